// Test the portable 16 KiB of workgroup memory: every word is written by one invocation and read by another.
// results[thread] is the number of words that were read with a wrong value.
// Dispatch: 1.

@group(0) @binding(0) var<storage, read_write> results: array<u32>;

const WORDS = 4096u;

var<workgroup> memory: array<u32, WORDS>;

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) thread: u32) {
    for (var i = thread; i < WORDS; i += 64u) { memory[i] = i * 2654435761u; }
    workgroupBarrier();
    var wrong = 0u;
    for (var i = 63u - thread; i < WORDS; i += 64u) {
        wrong += select(0u, 1u, memory[i] != i * 2654435761u);
    }
    results[thread] = wrong;
}
