// What a workgroup leaves of a turn, and what it takes up of the one before. Needs `shape`, `values`, `partials`.
#import common/turns.wgsl

fn put_turn(place: u32, instance: u32, sum: vec4<f32>) {
    let four = first_quarter * shape.instances + instance;
    values[place + four / 4u][four % 4u] = sum;
}

// Under SPLIT, before a turn: what the four quarters of a chunk left in the turn before, for a fourth of the instances.
fn join_turn(model: u32, block: u32, turn: u32, thread: u32) {
    if turn == 0u { return; }
    let from_turn = turn_place(turn - 1u, model, block);
    let sums = (model * shape.blocks + block) * shape.instances;
    let share = (shape.instances + 3u) / 4u;
    let end = min((first_quarter + 1u) * share, shape.instances);
    var i = first_quarter * share + thread;
    if i >= end { return; }
    // Loaded one ahead, since no load may pass what is written before it.
    var next = joined(from_turn, i);
    for (; i < end; i += WG) {
        let sum = next;
        next = joined(from_turn, min(i + WG, end - 1u));
        add_moments(sums + i, sum, turn == 1u);
    }
}
