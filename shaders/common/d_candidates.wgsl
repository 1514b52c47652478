// Backward pass of gates with candidates. Needs common/soft.wgsl, common/candidates.wgsl, and what d_gates.wgsl needs.

// Nodes and slots of a candidate, in the fields `wires` and `slots` or in the four fields after them.
fn edge_candidate(model: u32, place: u32, i: u32) -> vec4<u32> {
    let row = edges[edge_index(model, place) + 1u + i / 2u];
    if i % 2u == 0u { return vec4<u32>(row.wires, row.slots); }
    return vec4<u32>(row.fanout, row.gate, row.instance);
}

fn candidate(model: u32, place: u32, i: u32) -> vec2<u32> { return edge_candidate(model, place, i).xy; }
fn node_value(node: u32, base: u32, quarter: u32) -> vec4<f32> { return input(node, base, quarter); }

// Each candidate receives its share of an input's adjoint, and has a separate moment.
fn send_candidates(model: u32, level: vec4<u32>, base: u32, slots: u32, sums: u32, begins: bool, thread: u32) {
    for (var i = worker(thread); i < level.y; i += workers()) {
        let place = level.x + i;
        let edge = edges[edge_index(model, place)];
        let c = form_of(model, edge.gate);
        for (var j = 0u; j < rolled(4u); j++) {
            let d = sum_quarter(edge.fanout, slots, j);
            let a = mixed(model, edge.gate, place, 0u, base, j);
            let b = mixed(model, edge.gate, place, 1u, base, j);
            let to = (sums + j * shape.instances + edge.instance) * record();
            add_moments(to, moments(d, a, b), begins);
            let d_a = d * (c.y + c.w * b);
            let d_b = d * (c.z + c.w * a);
            for (var first = 0u; first < 2u * CANDIDATES; first += 4u) {
                var sum = vec4<f32>();
                for (var k = 0u; k < 4u; k++) {
                    let side = (first + k) / CANDIDATES;
                    let i = (first + k) % CANDIDATES;
                    let d_input = select(d_a, d_b, side == 1u);
                    let ends = edge_candidate(model, place, i);
                    put_slot(ends[2u + side], slots, j, share_of(model, edge.gate, side, i) * d_input);
                    sum[k] = total(d_input * input(ends[side], base, j));
                }
                add_moments(to + 1u + first / 4u, sum, begins);
            }
        }
    }
}
