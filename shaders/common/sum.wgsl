// Sums over the invocations of a workgroup in a fixed tree, so that no bit depends on their order.
// Needs workgroups of exactly SHARERS invocations, which all call `joined_sum` in uniform control flow with the same
// `columns`: a power of two from 1 to SHARERS. Afterwards `sums` may be overwritten at once.

const SHARERS = 64u;

var<workgroup> sums: array<f32, SHARERS>;

// Return to all invocations of a column the sum of their values; neighbouring invocations have different columns.
fn joined_sum(value: f32, columns: u32, thread: u32) -> f32 {
    sums[thread] = value;
    for (var reach = SHARERS / 2u; reach >= columns; reach /= 2u) {
        workgroupBarrier();
        if thread < reach { sums[thread] += sums[thread + reach]; }
    }
    workgroupBarrier();
    let total = sums[thread % columns];
    workgroupBarrier();
    return total;
}
