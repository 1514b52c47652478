// y[i, ...] = x[places[i], ...]: select rows by their indices, which must be less than the number of rows.
// Reference: difflogic/tensor/kernels/gather.py
// Dispatch: x = ceil(count / WG), at most 65535, then invocations loop.
// Shapes: x [rows, width]; places [chosen]; y [chosen, width], of count entries.
#import common/linear.wgsl

struct Shape { count: u32, width: u32 }

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<storage, read> places: array<u32>;
@group(0) @binding(2) var<storage, read> x: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) workgroups: vec3<u32>) {
    for (var i = id.x; i < shape.count; i += workgroups.x * WG) {
        y[i] = x[places[i / shape.width] * shape.width + i % shape.width];
    }
}
