// y[i, j, ...] = x with its axes in another order; an axis of stride 0 repeats its entry.
// Twin: difflogic/tensor/kernels/transpose.py
// Dispatch: x = ceil(count / WG), at most 65535, then invocations loop.
// Shapes: y [sizes]; x read through strides.
#import common/linear.wgsl
#import common/strided.wgsl

@group(0) @binding(0) var<uniform> shape: Strided;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) workgroups: vec3<u32>) {
    for (var i = id.x; i < shape.count; i += workgroups.x * WG) { y[i] = x[places(i).x]; }
}
