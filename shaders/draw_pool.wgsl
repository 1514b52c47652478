// Sample a batch from the pool, each sample from a separate part of the pool.
//
//     sub = split(data_key)[1]    place = sample * part + random_bits(split(fold_in(sub, "pool"))[1]) mod part
// Reference: difflogic/reference/kernels/draw_pool.py
// Dispatch: x = ceil(words / WG), at most 65535, then invocations loop; y = model.
// Shapes, per model: control [8]; pool [pool, ceil(H*W*C / 32)] words of 32 values; state [chunks, C, 16]; places [B].
#import common/shape.wgsl
#import common/keys.wgsl

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<storage, read> control: array<u32>;
@group(0) @binding(2) var<storage, read> pool: array<u32>;
@group(0) @binding(3) var<storage, read_write> state: array<f32>;
@group(0) @binding(4) var<storage, read_write> places: array<u32>;

const STREAM = 0x706f6f6cu;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) workgroups: vec3<u32>) {
    let key = split_second(fold_in(subkey(id.y, DATA_KEY), STREAM));
    let part = shape.pool / shape.batch;
    for (var item = id.x; item < shape.batch * shape.grid_words; item += workgroups.x * WG) {
        let sample = item / shape.grid_words;
        let first = item % shape.grid_words * WORD;
        let place = sample * part + random_word(key, sample, shape.batch) % part;
        if first == 0u { places[id.y * shape.batch + sample] = place; }
        let word = pool[(id.y * shape.pool + place) * shape.grid_words + first / WORD];
        for (var value = first; value < min(first + WORD, shape.grid * shape.channels); value++) {
            let cell = sample * shape.grid + value / shape.channels;
            state[state_index(id.y, cell, value % shape.channels)] = f32((word >> (value - first)) & 1u);
        }
    }
}
