// y = f(a, b), entry by entry; axes of size 1 are broadcast. `first` is a: a copy, with axes permuted or repeated by the
// strides.
// Reference: difflogic/tensor/kernels/binary.py
// Dispatch: x = ceil(count / 4 / WG), at most 65535, then invocations loop.
// Shapes: y [sizes], in fours; a, b read through strides.
#import common/strided.wgsl
#import common/real_power.wgsl

@group(0) @binding(0) var<uniform> shape: Strided;
@group(0) @binding(1) var<storage, read> a: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> b: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> y: array<vec4<f32>>;

override OP: u32;

fn value(fours: Operands) -> vec4<f32> {
    let p = fours.a;
    let q = fours.b;
    switch OP {
        case 0u: { return p + q; }
        case 1u: { return p - q; }
        case 2u: { return p * q; }
        case 3u: { return p / q; }
        case 4u: { return real_powers(p, q); }
        default: { return p; }
    }
}

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) workgroups: vec3<u32>) {
    for (var i = id.x; i < shape.fours; i += workgroups.x * WG) { y[i] = value(operands(i)); }
}
