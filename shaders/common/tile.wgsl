// Division of the work among workgroups, on which no result depends.
//
// A workgroup processes LANES chunks: invocation t computes every (WG / LANES)-th gate of chunk t % LANES. On software
// LANES = WG is best: invocations then need no barriers, which take microseconds there. On a GPU, many invocations on
// few cells are best, without storage barriers, which wait for memory that all workgroups share. Under SPLIT four
// workgroups share a chunk, a quarter each, or two workgroups, two quarters each: an invocation then loads a gate once
// for eight cells. Levels pass values on in workgroup memory.

// 1: several workgroups share a chunk.
override SPLIT: u32 = 0u;
// Number of quarters of a chunk per workgroup under SPLIT: 1 or 2.
override QUARTERS: u32 = 1u;

// End of a loop that GPUs should unroll, to issue the loads of all iterations together or keep an array in registers.
fn rolled_unless_split(end: u32) -> u32 {
    if SPLIT == 1u { return end; }
    return rolled(end);
}

// WG = 8, LANES = 2: invocations 0, 2, 4 and 6 are the workers 0 to 3 of chunk 0, the others those of chunk 1.
// So neighbouring invocations process neighbouring chunks, whose values are adjacent: place `item * LANES + lane`.
override LANES: u32 = 1u;
// Number of groups of four values in a workgroup's memory under SPLIT.
override NEAR: u32 = 1u;

fn worker(thread: u32) -> u32 { return select(thread / LANES, 0u, LANES == WG); }
fn workers() -> u32 { return WG / LANES; }

// A chunk's values of a node are adjacent, in four quarters of four cells. A workgroup processes all of them or some,
// always the same, since a multiple of `groups_per_tile` workgroups is dispatched.
fn quarters() -> u32 { return select(4u, QUARTERS, SPLIT == 1u); }
fn groups_per_tile() -> u32 { return 4u / quarters(); }

var<private> first_quarter: u32;

// Must be called before `first_quarter` is used.
fn choose_quarter(workgroup: u32) {
    if SPLIT == 1u { first_quarter = workgroup % groups_per_tile() * QUARTERS; }
}

// Place of a chunk's first item; the next one is LANES places further, since the items of all lanes are interleaved.
fn first_place(items: u32, lane: u32) -> u32 {
    return items * LANES + lane;
}

// Place of a quarter of an item, of `count` items per chunk: index of the sixteen values, and of the four among them.
// Under SPLIT, equal quarters of all items are consecutive, so that neighbouring invocations read adjacent values.
struct Place { chunk: u32, four: u32 }

fn place_of(item: u32, count: u32, base: u32, quarter: u32) -> Place {
    if SPLIT == 0u { return Place(base + item * LANES, quarter); }
    let four = quarter * count + item;
    return Place(base + four / 4u, four % 4u);
}

// Make storage that the invocations of a chunk have written visible to all of them.
fn chunk_barrier() {
    if LANES < WG { storageBarrier(); }
}
