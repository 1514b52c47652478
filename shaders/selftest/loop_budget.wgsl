// Test two loops of 40,000 iterations in one invocation. lavapipe of Mesa before 25 stops after 65,535 in total,
// without an error: results[0] is then too small.
// Dispatch: 1.

@group(0) @binding(0) var<storage, read_write> results: array<u32>;

@compute @workgroup_size(1)
fn main() {
    let trips = results[1];  // from the host, so that no compiler can count ahead
    var total = 0u;
    for (var i = 0u; i < trips; i++) { total += (i & 1u) + results[2]; }
    for (var i = 0u; i < trips; i++) { total += (i & 1u) + results[2]; }
    results[0] = total;
}
