// What a gate's logits learn from: (sum d, sum d*a, sum d*b, sum d*a*b) over cells. Needs `partials`.

fn total(x: vec4<f32>) -> f32 {
    return (x.x + x.y) + (x.z + x.w);
}

fn moments(d: vec4<f32>, a: vec4<f32>, b: vec4<f32>) -> vec4<f32> {
    let d_a = d * a;
    return vec4<f32>(total(d), total(d_a), total(d * b), total(d_a * b));
}

// The order of a block's sum: within four cells by pairs, (x + y) + (z + w); the four quarters of a chunk one after
// another; then chunk after chunk. No launch configuration changes that, and so no bit.
//
// Under SPLIT the four quarters are with four workgroups. Each leaves its own, and the next dispatch joins them, a fourth
// of the instances to each workgroup; `gradients` joins what the last one leaves. Dispatches write and read in turns, for
// none may overwrite what others of the same dispatch still read:
//
//     turn 0   writes 0
//     turn 1   joins 0, which begin the sums    writes 1
//     turn 2   joins 1                          writes 0 ...

// `begins`: nothing arrived before.
fn add_moments(at: u32, sum: vec4<f32>, begins: bool) {
    partials[at] = select(partials[at] + sum, sum, begins);
}
