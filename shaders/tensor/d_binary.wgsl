// d = d_y * df/da or d_y * df/db, entry by entry, before the sum over broadcast axes.
// Reference: difflogic/tensor/kernels/d_binary.py
// Dispatch: x = ceil(count / 4 / WG), at most 65535, then invocations loop.
// Shapes: d_y, d [sizes], in fours; a, b read through strides.
#import common/strided.wgsl
#import common/real_power.wgsl

@group(0) @binding(0) var<uniform> shape: Strided;
@group(0) @binding(1) var<storage, read> d_y: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> a: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> b: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> d: array<vec4<f32>>;

override OP: u32;

fn slope(fours: Operands) -> vec4<f32> {
    let p = fours.a;
    let q = fours.b;
    switch OP {
        case 0u: { return q; }
        case 1u: { return p; }
        case 2u: { return 1.0 / q; }
        case 3u: { return -p / (q * q); }
        // The formulas give 0 times infinity if the exponent or the base is 0, where the derivative is 0.
        case 4u: { return select(q * real_powers(p, q - 1.0), vec4<f32>(), q == vec4<f32>()); }
        default: { return select(real_powers(p, q) * logarithms(p), vec4<f32>(), p == vec4<f32>()); }
    }
}

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) workgroups: vec3<u32>) {
    for (var i = id.x; i < shape.fours; i += workgroups.x * WG) { d[i] = d_y[i] * slope(operands(i)); }
}
