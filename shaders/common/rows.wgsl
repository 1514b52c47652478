// Rows along one axis of an array: LANES invocations of a workgroup share a row; if LANES is 1, each has its own row.
#import common/sum.wgsl

struct Rows { outer: u32, count: u32, inner: u32 }

override LANES: u32;

// Entries of a row that an invocation processes: from `first` up to but excluding `end`, `step` apart.
struct Row { first: u32, end: u32, step: u32 }

// The rows that a workgroup processes at a time form a group.
fn row_groups() -> u32 {
    let rows = SHARERS / LANES;
    return (shape.outer * shape.inner + rows - 1u) / rows;
}

fn row_of(group: u32, thread: u32) -> Row {
    let rows = SHARERS / LANES;
    let row = group * rows + thread % rows;
    if row >= shape.outer * shape.inner { return Row(0u, 0u, 1u); }
    let first = row / shape.inner * shape.count * shape.inner + row % shape.inner;
    return Row(first + thread / rows * shape.inner, first + shape.count * shape.inner, LANES * shape.inner);
}
