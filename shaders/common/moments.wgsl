// What a gate's logits learn from: (sum d, sum d*a, sum d*b, sum d*a*b) over cells. Needs `partials`.

fn total(x: vec4<f32>) -> f32 {
    return (x.x + x.y) + (x.z + x.w);
}

fn moments(d: vec4<f32>, a: vec4<f32>, b: vec4<f32>) -> vec4<f32> {
    let d_a = d * a;
    return vec4<f32>(total(d), total(d_a), total(d * b), total(d_a * b));
}

// `first`: nothing arrived before.
fn add_moments(at: u32, sum: vec4<f32>, first: bool) {
    if first {
        partials[at] = sum;
    } else {
        partials[at] += sum;
    }
}
