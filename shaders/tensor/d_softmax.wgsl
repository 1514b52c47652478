// d_x = y * (d_y - sum(d_y * y)) along an axis.
// Reference: difflogic/tensor/kernels/d_softmax.py
// Dispatch: x = ceil(outer * inner / (64 / LANES)), at most 65535, then workgroups loop.
// Shapes: d_y, y, d_x [outer, count, inner].
#import common/rows.wgsl

@group(0) @binding(0) var<uniform> shape: Rows;
@group(0) @binding(1) var<storage, read> d_y: array<f32>;
@group(0) @binding(2) var<storage, read> y: array<f32>;
@group(0) @binding(3) var<storage, read_write> d_x: array<f32>;

@compute @workgroup_size(SHARERS)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    for (var item = workgroup.x; item < row_groups(); item += workgroups.x) {
        let row = row_of(item, thread);
        var sum = 0.0;
        for (var k = row.first; k < row.end; k += row.step) { sum += d_y[k] * y[k]; }
        sum = joined_sum(sum, SHARERS / LANES, thread);
        for (var k = row.first; k < row.end; k += row.step) { d_x[k] = y[k] * (d_y[k] - sum); }
    }
}
