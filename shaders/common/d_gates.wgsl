// Gates backward, level by level: what a gate's readers sent to it goes on to its two inputs, and into its moments.
//
// An edge is one input of one gate. It has a slot of its own, so that two gates that read the same node never write to
// the same place; the node sums its slots when its own turn comes. Say that gates 7 and 9 read node 4, gate 7 as a and
// gate 9 as b: the slots of these two edges lie side by side, at 12 and 13, and node 4's `fanout` is (12, 14).
// Needs `shape`, `edges`, `coefficients`, `values`, and the functions `input`, `sum_quarter`, `moments`, `add_moments`.

fn inputs(node: u32) -> Chunk {
    return Chunk(input(node, 0u), input(node, 1u), input(node, 2u), input(node, 3u));
}

// The adjoints of a gate's inputs in four cells, where its own is `d`; its moments.
fn send(edge: Edge, c: vec4<f32>, d: vec4<f32>, a: vec4<f32>, b: vec4<f32>, quarter: u32, slots: u32) -> vec4<f32> {
    values[edge.slots.x * LANES + slots][quarter] = d * (c.y + c.w * b);
    values[edge.slots.y * LANES + slots][quarter] = d * (c.z + c.w * a);
    return moments(d, a, b);
}

// Gates from `first` on, every `step`-th, in all sixteen cells; no index depends on a loop, which software is slow at.
fn send_chunks(model: u32, level: vec4<u32>, base: u32, slots: u32, sums: u32, begins: bool, thread: u32) {
    // `order` in difflogic/gpu/wiring.py sorts a level's gates by what they read as a: of pairs (0,1), (1,2), (2,3)
    // each b is the next gate's a, and half of the loads are saved where an invocation takes all gates in a row.
    var a = Chunk();
    var at_hand = OUTSIDE;  // the node whose values are in `a`
    for (var i = worker(thread); i < level.y; i += workers()) {
        let edge = edges[edge_index(model, level.x + i)];
        let c = coefficients[model * shape.gates + edge.gate];
        let d = sum_slots(edge.fanout, slots);
        if edge.wires.x != at_hand { a = inputs(edge.wires.x * LANES + base); }
        let b = inputs(edge.wires.y * LANES + base);
        var sum = send(edge, c, d[0], a[0], b[0], 0u, slots);
        sum += send(edge, c, d[1], a[1], b[1], 1u, slots);
        sum += send(edge, c, d[2], a[2], b[2], 2u, slots);
        sum += send(edge, c, d[3], a[3], b[3], 3u, slots);
        add_moments(sums + edge.instance, sum, begins);
        a = b;
        at_hand = edge.wires.y;
    }
}

// A quarter of a gate to each invocation; four neighbours join their moments.
fn send_quarters(model: u32, level: vec4<u32>, base: u32, slots: u32, sums: u32, begins: bool, thread: u32) {
    let items = level.y * 4u;
    for (var start = 0u; start < items; start += workers()) {
        let item = start + worker(thread);
        let quarter = item % 4u;
        let edge = edges[edge_index(model, level.x + min(item, items - 1u) / 4u)];
        var sum = vec4<f32>();
        if item < items {
            let a = input(edge.wires.x * LANES + base, quarter);
            let b = input(edge.wires.y * LANES + base, quarter);
            let c = coefficients[model * shape.gates + edge.gate];
            sum = send(edge, c, sum_quarter(edge.fanout, slots, quarter), a, b, quarter, slots);
        }
        // A barrier, so outside of the `if`: invocations past the last item bring a sum of 0 that nobody counts.
        sum = joined(thread, sum);
        if item < items && quarter == 0u { add_moments(sums + edge.instance, sum, begins); }
    }
}

fn level_adjoints(model: u32, level: vec4<u32>, base: u32, slots: u32, sums: u32, begins: bool, thread: u32) {
    if quarters() == 4u {
        send_chunks(model, level, base, slots, sums, begins, thread);
    } else {
        send_quarters(model, level, base, slots, sums, begins, thread);
    }
}
