// Initial states: uniform bits in the order of [B, H, W, C], with the epoch's data subkey.
//
//     sub = split(data_key)[1]    bits = random_bits(split(sub)[1]) mod 2
// Reference: difflogic/reference/kernels/seed_grid.py
// Dispatch: x = ceil(pairs / WG), at most 65535, then invocations loop; y = model.
// Shapes, per model: control [8]; state [chunks, C, 16].
#import common/shape.wgsl
#import common/keys.wgsl

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<storage, read> control: array<u32>;
@group(0) @binding(2) var<storage, read_write> state: array<f32>;

fn put_bit(model: u32, item: u32, word: u32) {
    state[state_index(model, item / shape.channels, item % shape.channels)] = f32(word & 1u);
}

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) workgroups: vec3<u32>) {
    let key = split_second(subkey(id.y, DATA_KEY));
    let count = shape.cells * shape.channels;
    let half = (count + 1u) / 2u;
    for (var i = id.x; i < half; i += workgroups.x * WG) {
        let words = random_pair(key, i, count);
        put_bit(id.y, i, words.x);
        if i + half < count { put_bit(id.y, i + half, words.y); }
    }
}
