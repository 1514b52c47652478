// Add the adjoint of an earlier loss to those of later steps, at the centres of patches, where `loss` writes its own.
// Reference: difflogic/reference/kernels/step_loss_backward.py
// Dispatch: x = ceil(values / WG), at most 65535, then invocations loop; y = model.
// Shapes, per model: d_judged [J-1, chunks, loss_channels, 16]; d_patches [chunks, C * adjoints, 16].
#import common/shape.wgsl
#import common/d_patches.wgsl

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<uniform> mark: EventIndex;
@group(0) @binding(2) var<storage, read> d_judged: array<f32>;
@group(0) @binding(3) var<storage, read_write> d_patches: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) workgroups: vec3<u32>) {
    let each = shape.loss_channels * CELLS_PER_CHUNK;
    let first = (id.y * (shape.judged - 1u) + mark.judged) * shape.chunks * each;
    for (var item = id.x; item < shape.chunks * each; item += workgroups.x * WG) {
        let cell = item / each * CELLS_PER_CHUNK + item % CELLS_PER_CHUNK;
        let node = shape.adjoints * (item % each / CELLS_PER_CHUNK) + shape.adjoints / 2u;
        d_patches[d_patch_index(id.y, cell, node)] += d_judged[first + item];
    }
}
