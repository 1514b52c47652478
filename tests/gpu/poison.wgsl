// Leaves NaN in 16 KiB of workgroup memory of every core, so that a kernel that reads before it writes shows it.
// Reads it back into `seen`: a store that nothing reads would be optimised away.

const WORDS = 4096u;
const NAN = 0x7fc00000u;

@group(0) @binding(0) var<storage, read_write> seen: array<u32>;

var<workgroup> memory: array<u32, WORDS>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    for (var i = thread; i < WORDS; i += 64u) { memory[i] = NAN; }
    workgroupBarrier();
    var all = NAN;
    for (var i = 0u; i < WORDS / 64u; i++) { all &= memory[(thread * 67u + i * 64u + seen[0]) % WORDS]; }
    seen[workgroup.x * 64u + thread] = select(1u, 0u, all == NAN);
}
