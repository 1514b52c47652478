// d_x = d_y * f'(x), entry by entry; `saved` is y, from which f'(x) follows, or x for the logarithm.
// Reference: difflogic/tensor/kernels/d_unary.py
// Dispatch: x = ceil(count / 4 / WG), at most 65535, then invocations loop.
// Shapes: d_y, saved, d_x [count], in fours.
#import common/linear.wgsl

struct Shape { fours: u32 }

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<storage, read> d_y: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> saved: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> d_x: array<vec4<f32>>;

override OP: u32;

fn adjoint(d: vec4<f32>, v: vec4<f32>) -> vec4<f32> {
    switch OP {
        case 0u: { return d * v; }
        case 1u: { return d / v; }
        case 2u: { return d / (v + v); }
        case 3u: { return d * (1.0 - v * v); }
        case 4u: { return d * (v * (1.0 - v)); }
        default: { return select(vec4<f32>(), d, v > vec4<f32>()); }
    }
}

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) workgroups: vec3<u32>) {
    for (var i = id.x; i < shape.fours; i += workgroups.x * WG) { d_x[i] = adjoint(d_y[i], saved[i]); }
}
