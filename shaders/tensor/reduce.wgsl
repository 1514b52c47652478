// y = sum of x, or of its squares, over an axis. A long axis gives sums of its parts, which need another dispatch.
// LANES invocations share a sum: each adds every LANES-th entry of a part in order, and a tree adds the results. The
// order depends on the shape alone. Invocations with different sums are adjacent along the inner axis.
// Reference: difflogic/tensor/kernels/reduce.py
// Dispatch: x = outer * parts * ceil(inner / (64 / LANES)), at most 65535, then workgroups loop.
// Shapes: x [outer, count, inner]; y [outer, parts, inner].
#import common/sum.wgsl

struct Shape { outer: u32, count: u32, inner: u32, parts: u32 }

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

override OP: u32;
override LANES: u32;

const ENTRIES = 64u; // number of entries that an invocation adds

fn share(outer: u32, part: u32, lane: u32, column: u32) -> f32 {
    let first = part * ENTRIES * LANES;
    let end = min(first + ENTRIES * LANES, shape.count);
    var sum = 0.0;
    for (var k = first + lane; k < end; k += LANES) {
        let entry = x[(outer * shape.count + k) * shape.inner + column];
        sum += select(entry, entry * entry, OP == 1u);
    }
    return sum;
}

@compute @workgroup_size(SHARERS)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let columns = SHARERS / LANES;
    let blocks = (shape.inner + columns - 1u) / columns;
    let lane = thread / columns;
    for (var item = workgroup.x; item < shape.outer * shape.parts * blocks; item += workgroups.x) {
        let column = item % blocks * columns + thread % columns;
        let part = item / blocks % shape.parts;
        let outer = item / blocks / shape.parts;
        var sum = 0.0;
        if column < shape.inner { sum = share(outer, part, lane, column); }
        sum = joined_sum(sum, columns, thread);
        if lane == 0u && column < shape.inner { y[(outer * shape.parts + part) * shape.inner + column] = sum; }
    }
}
