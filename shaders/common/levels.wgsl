// Levels after the trees under SPLIT, which pass values on in workgroup memory. Needs what common/step.wgsl needs.

// WG gates of level `number`, from `start` on; past the last level, the last level is repeated.
struct Turn { number: u32, start: u32, level: vec4<u32> }

fn turn_after(turn: Turn) -> Turn {
    if turn.start + WG < turn.level.y { return Turn(turn.number, turn.start + WG, turn.level); }
    return Turn(turn.number + 1u, 0u, shape.level_table[min(turn.number + 1u, shape.levels - 1u)]);
}

fn turn_gate(model: u32, turn: Turn, thread: u32) -> Gate {
    var g = gate_at(model, turn.level, turn.start + thread);
    g.inputs = vec2<u32>(near_input(turn.number, g.inputs.x), near_input(turn.number, g.inputs.y));
    return g;
}

fn do_turn(turn: Turn, g: Gate, base: u32, thread: u32) {
    if turn.number >= shape.levels { return; }
    if turn.start + thread < turn.level.y {
        let place = near_level(turn.number) + g.instance - turn.level.x;
        for (var k = 0u; k < QUARTERS; k++) {
            let j = first_quarter + k;
            let value = gate(g.form, near[near_at(g.inputs.x, j)], near[near_at(g.inputs.y, j)]);
            put_node(node_of(g.instance), place, base, j, value);
        }
    }
    workgroupBarrier();
}

// All levels after the trees, under SPLIT. The next gates do not depend on values, so that their wires and forms are
// loaded two turns ahead. The loop contains two turns, since copying a gate between variables would wait for its load.
fn evaluate_split(model: u32, base: u32, thread: u32) {
    var first = Turn(shape.tree_levels, 0u, shape.level_table[shape.tree_levels]);
    var second = turn_after(first);
    var even = turn_gate(model, first, thread);
    var odd = turn_gate(model, second, thread);
    while first.number < shape.levels {
        do_turn(first, even, base, thread);
        first = turn_after(second);
        even = turn_gate(model, first, thread);
        do_turn(second, odd, base, thread);
        second = turn_after(first);
        odd = turn_gate(model, second, thread);
    }
}
