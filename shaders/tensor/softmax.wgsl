// y = exp(x) / sum exp(x) along an axis, after the largest x is subtracted, since exp overflows from 89 on.
// LANES invocations share a row: 64 for a long row, else 1.
// Reference: difflogic/tensor/kernels/softmax.py
// Dispatch: x = ceil(outer * inner / (64 / LANES)), at most 65535, then workgroups loop.
// Shapes: x, y [outer, count, inner].
#import common/rows.wgsl

@group(0) @binding(0) var<uniform> shape: Rows;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(SHARERS)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    for (var item = workgroup.x; item < row_groups(); item += workgroups.x) {
        let row = row_of(item, thread);
        var largest = -0x1.fffffep+127f;
        for (var k = row.first; k < row.end; k += row.step) { largest = max(largest, x[k]); }
        sums[thread] = largest;
        for (var reach = SHARERS / 2u; reach >= SHARERS / LANES; reach /= 2u) {
            workgroupBarrier();
            if thread < reach { sums[thread] = max(sums[thread], sums[thread + reach]); }
        }
        workgroupBarrier();
        largest = sums[thread % (SHARERS / LANES)];
        var sum = 0.0;
        for (var k = row.first; k < row.end; k += row.step) {
            let part = exp(x[k] - largest);
            y[k] = part;
            sum += part;
        }
        workgroupBarrier();
        sum = joined_sum(sum, SHARERS / LANES, thread);
        for (var k = row.first; k < row.end; k += row.step) { y[k] /= sum; }
    }
}
