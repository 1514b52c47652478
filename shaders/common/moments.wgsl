// Moments (sum d, sum d*a, sum d*b, sum d*a*b) over cells, from which a gate's gradients follow. Needs `partials`.

fn total(x: vec4<f32>) -> f32 {
    return (x.x + x.y) + (x.z + x.w);
}

fn moments(d: vec4<f32>, a: vec4<f32>, b: vec4<f32>) -> vec4<f32> {
    let d_a = d * a;
    return vec4<f32>(total(d), total(d_a), total(d * b), total(d_a * b));
}

// Each quarter of a chunk has separate partial sums, [models, blocks, 4, instances], to which no other workgroup adds.
// A sum first adds four cells by pairs, (x + y) + (z + w), then one step after another and one chunk after another;
// `gradients` adds the quarters and blocks. No launch configuration changes this order, nor any bit.
fn first_partial(model: u32, block: u32, quarter: u32) -> u32 {
    return ((model * shape.blocks + block) * 4u + quarter) * shape.instances;
}

// `begins`: true for the first addition, which assigns.
fn add_moments(at: u32, sum: vec4<f32>, begins: bool) {
    partials[at] = select(partials[at] + sum, sum, begins);
}
