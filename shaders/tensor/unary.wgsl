// y = f(x), entry by entry.
// Reference: difflogic/tensor/kernels/unary.py
// Dispatch: x = ceil(count / 4 / WG), at most 65535, then invocations loop.
// Shapes: x, y [count], in fours: entries that pad the last four are computed but never read.
#import common/linear.wgsl
#import common/logarithm.wgsl

struct Shape { fours: u32 }

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> y: array<vec4<f32>>;

override OP: u32;

// The exponent is never positive, so that nothing overflows.
fn sigmoid(v: vec4<f32>) -> vec4<f32> {
    let small = exp(-abs(v));
    return select(vec4(1.0), small, v < vec4<f32>()) / (1.0 + small);
}

// Some drivers' tanh is NaN for large numbers, and a quotient of exponentials loses the digits of small numbers, for
// which the series is accurate to 1e-9.
fn tanh_of(v: vec4<f32>) -> vec4<f32> {
    let small = exp(-2.0 * abs(v));
    let square = v * v;
    let series = v * (1.0 - square * (1.0 / 3.0 - square * (2.0 / 15.0)));
    return select(sign(v) * (1.0 - small) / (1.0 + small), series, abs(v) < vec4(0.03));
}

// NaN stays NaN, which `max` alone would not ensure.
fn relu(v: vec4<f32>) -> vec4<f32> {
    let nothing = (bitcast<vec4<u32>>(v) & vec4(0x7fffffffu)) > vec4(0x7f800000u);
    return select(max(v, vec4<f32>()), v, nothing);
}

fn value(v: vec4<f32>) -> vec4<f32> {
    switch OP {
        case 0u: { return -v; }
        case 1u: { return exp(v); }
        case 2u: { return logarithms(v); }
        case 3u: { return sqrt(v); }
        case 4u: { return tanh_of(v); }
        case 5u: { return sigmoid(v); }
        default: { return relu(v); }
    }
}

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) workgroups: vec3<u32>) {
    for (var i = id.x; i < shape.fours; i += workgroups.x * WG) { y[i] = value(x[i]); }
}
