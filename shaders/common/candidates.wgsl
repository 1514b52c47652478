// Learned wiring: each input of a gate is chosen among CANDIDATES nodes. Needs `shape`.
//
// A gate's record in `coefficients` and `partials` is one vec4 for its function and, with k candidates per input, k / 2
// vec4s for the candidates: k numbers of input a, then k of input b.

// Number of candidates per input, k. If it is 1, the wiring is fixed, and a record is one vec4.
override CANDIDATES: u32 = 1u;

// Length of a record in vec4s, and of an edge in rows: the first row, then one row per two candidates.
fn record() -> u32 { return 1u + CANDIDATES / 2u; }

// Number of rows of 16 parameters per model: one per gate, then the logits of all wires, gate by gate.
fn parameter_rows() -> u32 {
    return shape.gates + select((2u * CANDIDATES * shape.gates + GATES - 1u) / GATES, 0u, CANDIDATES == 1u);
}

// Index of a gate's id in `gate_ids`. The ids of a model are followed by the chosen candidates, two per gate.
fn id_at(model: u32, gate: u32) -> u32 {
    return model * shape.gates * select(3u, 1u, CANDIDATES == 1u) + gate;
}
