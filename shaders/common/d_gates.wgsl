// Backward pass of gates, level by level: the adjoints of a gate's inputs and its moments follow from its adjoint.
//
// Each input of a gate has a slot for its adjoint. If gates 7 and 9 read node 4, these slots are adjacent, for example
// 12 and 13. The `fanout` of node 4 is then (12, 14): its adjoint is the sum of these slots.
// Needs `shape`, `edges`, `coefficients`, `values`, and the functions `input`, `d_output`, `put_slot`, `sum_slots`,
// `sum_readers`, `moments` and `add_moments`.

// Store the adjoints of a gate's inputs in four cells, and return the gate's moments; `d` is the gate's adjoint.
fn send(edge: Edge, c: vec4<f32>, d: vec4<f32>, a: vec4<f32>, b: vec4<f32>, quarter: u32, slots: u32) -> vec4<f32> {
    put_slot(edge.slots.x, slots, quarter, d * (c.y + c.w * b));
    put_slot(edge.slots.y, slots, quarter, d * (c.z + c.w * a));
    return moments(d, a, b);
}

// All gates of a worker in a level, in sixteen cells. Quarters are unrolled: indices from a loop are slow on software.
fn send_chunks(model: u32, level: vec4<u32>, base: u32, slots: u32, sums: u32, begins: bool, thread: u32) {
    // `order` in difflogic/gpu/wiring.py sorts a level's gates by what they read as a: of pairs (0,1), (1,2), (2,3)
    // each b is the next gate's a, and half of the loads are saved if an invocation processes all gates in turn.
    var a = Chunk();
    var at_hand = OUTSIDE;  // the node whose values are in `a`
    for (var i = worker(thread); i < level.y; i += workers()) {
        let edge = edges[edge_index(model, level.x + i)];
        let c = coefficients[model * shape.gates + edge.gate];
        let d = sum_slots(edge.fanout, slots);
        if edge.wires.x != at_hand { a = inputs(edge.wires.x, base); }
        let b = inputs(edge.wires.y, base);
        let to = sums + edge.instance;
        add_moments(to, send(edge, c, d[0], a[0], b[0], 0u, slots), begins);
        add_moments(to + shape.instances, send(edge, c, d[1], a[1], b[1], 1u, slots), begins);
        add_moments(to + 2u * shape.instances, send(edge, c, d[2], a[2], b[2], 2u, slots), begins);
        add_moments(to + 3u * shape.instances, send(edge, c, d[3], a[3], b[3], 3u, slots), begins);
        a = b;
        at_hand = edge.wires.y;
    }
}

// In the backward pass `number` counts levels from 1, and turns proceed down to the trees.
fn turn_before(turn: Turn) -> Turn {
    if turn.start + WG < turn.level.y { return Turn(turn.number, turn.start + WG, turn.level); }
    let number = max(turn.number, shape.tree_levels + 1u) - 1u;  // past the last turn that one again
    return Turn(number, 0u, shape.level_table[max(number, 1u) - 1u]);
}

// Edge of an invocation's gate in a turn: past a level's last gate that of the last gate, past the last level any edge.
fn turn_edge(model: u32, turn: Turn, thread: u32) -> Edge {
    return edges[edge_index(model, turn.level.x + min(turn.start + thread, turn.level.y - 1u))];
}

// Data of a gate that is known before its readers' adjoints, for one or two quarters.
struct Prepared { edge: Edge, c: vec4<f32>, a: array<Four, 2>, b: array<Four, 2>, before: array<Four, 2> }

fn prepared(model: u32, edge: Edge, base: u32, sums: u32) -> Prepared {
    var p = Prepared();
    p.edge = edge;
    p.c = coefficients[model * shape.gates + edge.gate];
    for (var k = 0u; k < QUARTERS; k++) {
        p.a[k] = input(edge.wires.x, base, first_quarter + k);
        p.b[k] = input(edge.wires.y, base, first_quarter + k);
        p.before[k] = partials[sums + k * shape.instances + edge.instance];
    }
    return p;
}

// Adjoints of the next state, one cell per invocation, so that many loads are pending together. They are stored at the
// end of `near`, where the last level has no slots.
fn gather_outputs(model: u32, chunk: u32, thread: u32) {
    for (var item = thread; item < shape.outputs * 4u * QUARTERS; item += WG) {
        let output = item / (4u * QUARTERS);
        let i = item % 4u;
        let quarter = first_quarter + item / 4u % QUARTERS;
        var d = 0.0;
        if PERCEIVES == 1u {
            d = d_reaching(model, chunk * CELLS_PER_CHUNK + quarter * 4u + i, output, false);
        } else {
            d = d_outputs(model, chunk, output, quarter)[i];
        }
        near[first_gathered(output, quarter) + i] = vec4<f32>(d);
    }
    workgroupBarrier();
}

fn first_gathered(output: u32, quarter: u32) -> u32 {
    return near_at(NEAR / QUARTERS - (shape.outputs - output) * 4u, quarter);
}

fn gathered(output: u32, quarter: u32) -> vec4<f32> {
    let first = first_gathered(output, quarter);
    return vec4<f32>(near[first].x, near[first + 1u].x, near[first + 2u].x, near[first + 3u].x);
}

fn do_send(turn: Turn, now: Prepared, slots: u32, sums: u32, begins: bool, thread: u32) {
    if turn.number == shape.tree_levels { return; }
    if turn.start + thread < turn.level.y {
        for (var k = 0u; k < QUARTERS; k++) {
            let j = first_quarter + k;
            // No gate of the step reads the last level: its adjoint is that of the next state.
            var d = vec4<f32>();
            if turn.number == shape.levels {
                d = gathered(now.edge.instance + shape.outputs - shape.instances, j);
            } else {
                d = sum_readers(now.edge.fanout, slots, j);
            }
            let sum = send(now.edge, now.c, d, now.a[k], now.b[k], j, slots);
            partials[sums + k * shape.instances + now.edge.instance] = select(now.before[k] + sum, sum, begins);
        }
    }
    workgroupBarrier();
}

// All levels after the trees, under SPLIT. Only a gate's adjoint must wait for the next level. Its edge is loaded four
// turns ahead, and the data at the edge's indices two turns ahead, so that both arrive during other turns.
fn send_split(model: u32, base: u32, slots: u32, sums: u32, begins: bool, thread: u32) {
    var first = Turn(shape.levels, 0u, shape.level_table[shape.levels - 1u]);
    var second = turn_before(first);
    var third = turn_before(second);
    var fourth = turn_before(third);
    var even = prepared(model, turn_edge(model, first, thread), base, sums);
    var odd = prepared(model, turn_edge(model, second, thread), base, sums);
    var even_edge = turn_edge(model, third, thread);
    var odd_edge = turn_edge(model, fourth, thread);
    while first.number > shape.tree_levels {
        do_send(first, even, slots, sums, begins, thread);
        even = prepared(model, even_edge, base, sums);
        first = third;
        third = turn_before(fourth);
        even_edge = turn_edge(model, third, thread);
        do_send(second, odd, slots, sums, begins, thread);
        odd = prepared(model, odd_edge, base, sums);
        second = fourth;
        fourth = turn_before(third);
        odd_edge = turn_edge(model, fourth, thread);
    }
}
