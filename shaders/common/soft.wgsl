// Soft gates: a form is `c0, ca, cb, cab`. Needs `shape`, `coefficients`, common/candidates.wgsl, and with candidates
// `candidate(model, place, i)`, the nodes of candidate i of both inputs, and `node_value(node, base, quarter)`.

alias One = f32;
alias Four = vec4<f32>;

fn gate(c: vec4<f32>, a: vec4<f32>, b: vec4<f32>) -> vec4<f32> {
    // Three fused multiply-adds, for four cells at once.
    return c.x + c.y * a + (c.z + c.w * a) * b;
}

fn form_of(model: u32, id: u32) -> vec4<f32> {
    return coefficients[(model * shape.gates + id) * record()];
}

// The share of a candidate in an input: side 0 is a, side 1 b.
fn share_of(model: u32, gate: u32, side: u32, i: u32) -> f32 {
    let k = side * CANDIDATES + i;
    return coefficients[(model * shape.gates + gate) * record() + 1u + k / 4u][k % 4u];
}

// Value of an input with candidates in four cells; `place` is that of the instance.
fn mixed(model: u32, gate: u32, place: u32, side: u32, base: u32, quarter: u32) -> vec4<f32> {
    var sum = vec4<f32>();
    for (var i = 0u; i < CANDIDATES; i++) {
        sum += share_of(model, gate, side, i) * node_value(candidate(model, place, i)[side], base, quarter);
    }
    return sum;
}

// 1: the forward pass stores every node's value for the backward pass. 0: the backward pass recomputes them.
override KEEP: u32 = 1u;
