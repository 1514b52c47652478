// Sample the corners of the damage squares for all samples and damage steps of an epoch.
//
//     word = random_bits(fold_in(split(train_key)[1], "dama"))    row = word * H >> 32    column = word * W >> 32
// Reference: difflogic/reference/kernels/draw_corners.py
// Dispatch: x = ceil(pairs / WG), at most 65535, then invocations loop; y = model.
// Shapes, per model: control [8]; corners [D, samples] of (row, column), the batch's after the evaluation grids'.
#import common/shape.wgsl
#import common/keys.wgsl
#import common/corners.wgsl

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<storage, read> control: array<u32>;
@group(0) @binding(2) var<storage, read_write> corners: array<vec2<u32>>;

const STREAM = 0x64616d61u;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) workgroups: vec3<u32>) {
    let key = fold_in(subkey(id.y, TRAIN_KEY), STREAM);
    let count = shape.damages * shape.batch;
    for (var item = id.x; item < count; item += workgroups.x * WG) {
        let row = random_below(shape.height, key, 2u * item, 2u * count);
        let column = random_below(shape.width, key, 2u * item + 1u, 2u * count);
        corners[corner_index(id.y, item / shape.batch, of_batch(item % shape.batch))] = vec2<u32>(row, column);
    }
}
