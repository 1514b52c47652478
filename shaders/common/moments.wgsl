// What a gate's logits learn from: (sum d, sum d*a, sum d*b, sum d*a*b) over cells. Needs `partials`.

fn total(x: vec4<f32>) -> f32 {
    return (x.x + x.y) + (x.z + x.w);
}

fn moments(d: vec4<f32>, a: vec4<f32>, b: vec4<f32>) -> vec4<f32> {
    let d_a = d * a;
    return vec4<f32>(total(d), total(d_a), total(d * b), total(d_a * b));
}

// The order of a block's sum: within four cells by pairs, (x + y) + (z + w); the four quarters of a chunk one after
// another, either in a loop or by `joined`; then chunk after chunk. No launch configuration changes that, and so no
// bit.
var<workgroup> quarter_sums: array<vec4<f32>, WG>;

// The sum of four quarters, in order, that four neighbours bring; only what the first of them gets counts. A barrier.
fn joined(thread: u32, sum: vec4<f32>) -> vec4<f32> {
    quarter_sums[thread] = sum;
    workgroupBarrier();
    var total = vec4<f32>();
    if worker(thread) % 4u == 0u {
        total = quarter_sums[thread];
        total += quarter_sums[thread + LANES];
        total += quarter_sums[thread + 2u * LANES];
        total += quarter_sums[thread + 3u * LANES];
    }
    workgroupBarrier();
    return total;
}

// `begins`: nothing arrived before.
fn add_moments(at: u32, sum: vec4<f32>, begins: bool) {
    partials[at] = select(partials[at] + sum, sum, begins);
}
