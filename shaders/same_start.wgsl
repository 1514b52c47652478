// Copy one initial state to all samples, in every epoch.
// Reference: difflogic/reference/kernels/same_start.py
// Dispatch: x = ceil(values / WG), at most 65535, then invocations loop; y = model.
// Shapes, per model: state [chunks, C, 16]; same [H*W, C], for all models.
#import common/shape.wgsl

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<storage, read> same: array<f32>;
@group(0) @binding(2) var<storage, read_write> state: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) workgroups: vec3<u32>) {
    for (var item = id.x; item < shape.cells * shape.channels; item += workgroups.x * WG) {
        let cell = item / shape.channels;
        let channel = item % shape.channels;
        state[state_index(id.y, cell, channel)] = same[cell % shape.grid * shape.channels + channel];
    }
}
