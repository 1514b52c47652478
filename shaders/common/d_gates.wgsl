// Gates backward, level by level: what a gate's readers sent to it goes on to its two inputs, and into its moments.
//
// An edge is one input of one gate. It has a slot of its own, so that two gates that read the same node never write to
// the same place; the node sums its slots when its own turn comes. Say that gates 7 and 9 read node 4, gate 7 as a and
// gate 9 as b: the slots of these two edges lie side by side, at 12 and 13, and node 4's `fanout` is (12, 14).
// Needs `shape`, `edges`, `coefficients`, `values`, and the functions `input`, `d_output`, `put_slot`, `sum_slots`,
// `sum_quarter`, `moments` and `add_moments`.

// The adjoints of a gate's inputs in four cells, where its own is `d`; its moments.
fn send(edge: Edge, c: vec4<f32>, d: vec4<f32>, a: vec4<f32>, b: vec4<f32>, quarter: u32, slots: u32) -> vec4<f32> {
    put_slot(edge.slots.x, slots, quarter, d * (c.y + c.w * b));
    put_slot(edge.slots.y, slots, quarter, d * (c.z + c.w * a));
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
        if edge.wires.x != at_hand { a = inputs(edge.wires.x, base); }
        let b = inputs(edge.wires.y, base);
        var sum = send(edge, c, d[0], a[0], b[0], 0u, slots);
        sum += send(edge, c, d[1], a[1], b[1], 1u, slots);
        sum += send(edge, c, d[2], a[2], b[2], 2u, slots);
        sum += send(edge, c, d[3], a[3], b[3], 3u, slots);
        add_moments(sums + edge.instance, sum, begins);
        a = b;
        at_hand = edge.wires.y;
    }
}

// Where the gates of a turn are: `level` counts from 1, and turns go down to the trees.
struct Turn { level: u32, start: u32 }

fn next_turn(turn: Turn) -> Turn {
    let start = turn.start + WG;
    if turn.level == shape.tree_levels { return turn; }  // the last is over
    if start < shape.level_table[turn.level - 1u].y { return Turn(turn.level, start); }
    return Turn(turn.level - 1u, 0u);
}

// Of an invocation, in a turn. Past a level's last gate the last once more, and past the last level anything.
fn turn_edge(model: u32, turn: Turn, thread: u32) -> Edge {
    let level = shape.level_table[max(turn.level, 1u) - 1u];
    return edges[edge_index(model, level.x + min(turn.start + thread, level.y - 1u))];
}

// What of a gate is known before its readers have sent.
struct Prepared { edge: Edge, c: vec4<f32>, a: vec4<f32>, b: vec4<f32> }

fn prepared(model: u32, edge: Edge, base: u32) -> Prepared {
    let c = coefficients[model * shape.gates + edge.gate];
    return Prepared(edge, c, input(edge.wires.x, base, first_quarter), input(edge.wires.y, base, first_quarter));
}

// The adjoints of the next state, a cell to an invocation: many wait side by side. They lie at the end of `near`, where
// the last level has none of its slots.
fn gather_outputs(model: u32, chunk: u32, thread: u32) {
    for (var item = thread; item < shape.outputs * 4u; item += WG) {
        var d = 0.0;
        if PERCEIVES == 1u {
            let cell = chunk * CELLS_PER_CHUNK + first_quarter * 4u + item % 4u;
            d = d_reaching(model, cell, item / 4u, false);
        } else {
            d = d_outputs(model, chunk, item / 4u, first_quarter)[item % 4u];
        }
        near[NEAR - shape.outputs * 4u + item] = vec4<f32>(d);
    }
    workgroupBarrier();
}

fn gathered(output: u32) -> vec4<f32> {
    let first = NEAR - shape.outputs * 4u + output * 4u;
    return vec4<f32>(near[first].x, near[first + 1u].x, near[first + 2u].x, near[first + 3u].x);
}

// All levels after the trees, under SPLIT. Only a gate's adjoint has to wait for the level behind it. Its edge is loaded
// two turns ahead, and what that names one turn ahead: both arrive while other turns are at work.
fn send_split(model: u32, base: u32, slots: u32, turn_sums: u32, thread: u32) {
    var turn = Turn(shape.levels, 0u);
    var second = next_turn(turn);
    var next = prepared(model, turn_edge(model, turn, thread), base);
    var edge = turn_edge(model, second, thread);
    while turn.level > shape.tree_levels {
        let now = next;
        let third = next_turn(second);
        next = prepared(model, edge, base);
        edge = turn_edge(model, third, thread);
        if turn.start + thread < shape.level_table[turn.level - 1u].y {
            // Nobody reads the last level within the step: its adjoint is that of the next state.
            var d = vec4<f32>();
            if turn.level == shape.levels {
                d = gathered(now.edge.instance + shape.outputs - shape.instances);
            } else {
                d = sum_quarter(now.edge.fanout, slots, first_quarter);
            }
            let sum = send(now.edge, now.c, d, now.a, now.b, first_quarter, slots);
            put_turn(turn_sums, now.edge.instance, sum);
        }
        if second.level < turn.level { workgroupBarrier(); }
        turn = second;
        second = third;
    }
}
