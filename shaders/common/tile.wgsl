// How a workgroup divides its work. Scheduling only: no value depends on these.
//
// A workgroup serves LANES chunks: invocation t works on chunk t % LANES, and takes every
// (WG / LANES)-th item of it. GPUs want LANES = 1, many invocations on a chunk. Software adapters
// want LANES = WG: an invocation then shares its chunk with no other and needs no barrier, which
// costs them microseconds.

// WG = 8, LANES = 2: invocations 0, 2, 4 and 6 are the workers 0 to 3 of chunk 0, the others those of chunk 1.
// Neighbouring invocations so work on neighbouring chunks, whose values lie side by side: place `item * LANES + lane`.
override WG: u32 = 64u;
override LANES: u32 = 1u;

fn worker(thread: u32) -> u32 {
    return select(thread / LANES, 0u, LANES == WG);
}

fn workers() -> u32 {
    return WG / LANES;
}

// A chunk's values of a node lie side by side, in four quarters of four cells. Where many invocations share a chunk, each
// takes one quarter of a gate, so that four neighbours read and write 64 bytes in a row; else it takes whole gates.
// A work item is a quarter: `for (var item = worker(thread) * quarters(); ...; item += workers() * quarters())`.
fn quarters() -> u32 {
    return select(4u, 1u, workers() >= 64u && workers() % 4u == 0u);
}

fn first_quarter(item: u32) -> u32 {
    return select(item % 4u, 0u, quarters() == 4u);
}

// Where the first of a chunk's items lies; from one to the next it is LANES, for those of all lanes lie side by side.
fn first_place(items: u32, lane: u32) -> u32 {
    return items * LANES + lane;
}

// Storage written by the invocations of a chunk becomes visible to all of them.
fn chunk_barrier() {
    if LANES < WG { storageBarrier(); }
}
