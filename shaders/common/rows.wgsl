// Rows along one axis of an array: LANES invocations of a workgroup share a row; if LANES is 1, each has its own row.

struct Rows { outer: u32, count: u32, inner: u32 }

override LANES: u32;

const SHARERS = 64u;

// Entries of a row that an invocation processes: from `first` up to but excluding `end`, `step` apart.
struct Row { first: u32, end: u32, step: u32 }

var<workgroup> joined: array<f32, SHARERS>;

// The rows that a workgroup processes at a time form a group.
fn row_groups() -> u32 {
    let rows = SHARERS / LANES;
    return (shape.outer * shape.inner + rows - 1u) / rows;
}

fn row_of(group: u32, thread: u32) -> Row {
    let row = group * (SHARERS / LANES) + thread / LANES;
    if row >= shape.outer * shape.inner { return Row(0u, 0u, 1u); }
    let first = row / shape.inner * shape.count * shape.inner + row % shape.inner;
    return Row(first + thread % LANES * shape.inner, first + shape.count * shape.inner, LANES * shape.inner);
}

// Return to all invocations of a row the sum of their values, added in a fixed order.
fn joined_sum(sum: f32, thread: u32) -> f32 {
    joined[thread] = sum;
    for (var reach = LANES / 2u; reach > 0u; reach /= 2u) {
        workgroupBarrier();
        if thread % LANES < reach { joined[thread] += joined[thread + reach]; }
    }
    workgroupBarrier();
    let total = joined[thread - thread % LANES];
    workgroupBarrier();
    return total;
}
