// d = d_y * df/da or d_y * df/db, entry by entry, before what was repeated is summed.
// Twin: difflogic/tensor/kernels/d_binary.py
// Dispatch: x = ceil(count / WG), at most 65535, then invocations loop.
// Shapes: d_y, d [sizes]; a, b read through strides.
#import common/linear.wgsl
#import common/strided.wgsl
#import common/real_power.wgsl

@group(0) @binding(0) var<uniform> shape: Strided;
@group(0) @binding(1) var<storage, read> d_y: array<f32>;
@group(0) @binding(2) var<storage, read> a: array<f32>;
@group(0) @binding(3) var<storage, read> b: array<f32>;
@group(0) @binding(4) var<storage, read_write> d: array<f32>;

override OP: u32;

fn slope(p: f32, q: f32) -> f32 {
    switch OP {
        case 0u: { return q; }
        case 1u: { return p; }
        case 2u: { return 1.0 / q; }
        case 3u: { return -p / (q * q); }
        case 4u: {
            if q == 0.0 { return 0.0; }
            return q * real_power(p, q - 1.0);
        }
        default: {
            if p == 0.0 { return 0.0; }
            return real_power(p, q) * log(p);
        }
    }
}

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) workgroups: vec3<u32>) {
    for (var i = id.x; i < shape.count; i += workgroups.x * WG) {
        let place = places(i);
        d[i] = d_y[i] * slope(a[place.x], b[place.y]);
    }
}
