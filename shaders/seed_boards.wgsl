// Initial states: boards sampled with replacement from all boards, in channel 0, with the epoch's data subkey.
//
//     sub = split(data_key)[1]    board = random_bits(split(sub)[1]) mod 2^(H*W), most significant bit first
// Reference: difflogic/reference/kernels/seed_boards.py
// Dispatch: x = ceil(cells / WG), at most 65535, then invocations loop; y = model.
// Shapes, per model: control [8]; state [chunks, 1, 16].
#import common/shape.wgsl
#import common/keys.wgsl

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<storage, read> control: array<u32>;
@group(0) @binding(2) var<storage, read_write> state: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) workgroups: vec3<u32>) {
    let key = split_second(subkey(id.y, DATA_KEY));
    for (var cell = id.x; cell < shape.cells; cell += workgroups.x * WG) {
        let board = random_word(key, cell / shape.grid, shape.batch);
        state[state_index(id.y, cell, 0u)] = f32((board >> (shape.grid - 1u - cell % shape.grid)) & 1u);
    }
}
