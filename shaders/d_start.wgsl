// The adjoint of the first state, where somebody asks for it.
// Twin: difflogic/reference/kernels/d_start.py
// Dispatch: x = ceil(values / WG), at most 65535, then invocations loop; y = model.
// Shapes, per model: d_next [chunks, patch nodes, 16]; d_start [chunks, C, 16].
#import common/shape.wgsl
#import common/states.wgsl
#import common/linear.wgsl

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<storage, read> d_next: array<f32>;
@group(0) @binding(2) var<storage, read_write> d_start: array<f32>;

#import common/d_state.wgsl

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) workgroups: vec3<u32>) {
    for (var item = id.x; item < shape.cells * shape.channels; item += workgroups.x * WG) {
        let cell = item / shape.channels;
        let channel = item % shape.channels;
        d_start[state_index(id.y, cell, channel)] = d_state(id.y, cell, channel);
    }
}
