// y[i, j, ...] = a with its axes in another order; an axis with stride 0 repeats an entry.
// Reference: difflogic/tensor/kernels/transpose.py
// Dispatch: x = ceil(count / 4 / WG), at most 65535, then invocations loop.
// Shapes: y [sizes], in fours; a read through strides.
#import common/strided.wgsl
#import common/strided_a.wgsl

@group(0) @binding(0) var<uniform> shape: Strided;
@group(0) @binding(1) var<storage, read> a: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> y: array<vec4<f32>>;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) workgroups: vec3<u32>) {
    for (var i = id.x; i < shape.fours; i += workgroups.x * WG) { y[i] = four_of_a(i); }
}
