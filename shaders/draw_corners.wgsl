// Sample the corners of the damage squares for all samples and damage steps of an epoch.
//
//     word = random_bits(fold_in(split(train_key)[1], "dama"))    row = word * H >> 32    column = word * W >> 32
// Reference: difflogic/reference/kernels/draw_corners.py
// Dispatch: x = ceil(pairs / WG), at most 65535, then invocations loop; y = model.
// Shapes, per model: control [8]; corners [D, samples] of (row, column), flat, the batch's after the evaluation grids'.
#import common/shape.wgsl
#import common/grid.wgsl
#import common/threefry.wgsl
#import common/control.wgsl
#import common/linear.wgsl

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<storage, read> control: array<u32>;
@group(0) @binding(2) var<storage, read_write> corners: array<u32>;

#import common/corners.wgsl

const STREAM = 0x64616d61u;

// High word of a product; `side` is below 2^16.
fn share(word: u32, side: u32) -> u32 {
    return ((word >> 16u) * side + (((word & 0xffffu) * side) >> 16u)) >> 16u;
}

fn write_corner(model: u32, number: u32, word: u32) {
    let entry = number / 2u;
    let at = corner_index(model, entry / shape.batch, of_batch(entry % shape.batch));
    corners[2u * at + number % 2u] = share(word, select(shape.width, shape.height, number % 2u == 0u));
}

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) workgroups: vec3<u32>) {
    let at = id.y * CONTROL_WORDS + TRAIN_KEY;
    let key = fold_in(split_second(vec2<u32>(control[at], control[at + 1u])), STREAM);
    let half = shape.damages * shape.batch;
    for (var i = id.x; i < half; i += workgroups.x * WG) {
        let words = random_pair(key, i, 2u * half);
        write_corner(id.y, i, words.x);
        write_corner(id.y, i + half, words.y);
    }
}
