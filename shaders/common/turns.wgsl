// Where the moments of a turn lie among `values`: [2, models, blocks, 4 quarters, instances] fours, behind the scratch
// memory. See common/moments.wgsl. Needs `shape` and `values`.

// Each chunk of a block has a turn in each step.
fn last_turn() -> u32 {
    return shape.steps * shape.chunks_per_block - 1u;
}

fn turn_place(turn: u32, model: u32, block: u32) -> u32 {
    return shape.turn_moments + ((turn % 2u * shape.models + model) * shape.blocks + block) * shape.instances;
}

fn turn_value(place: u32, quarter: u32, instance: u32) -> vec4<f32> {
    let four = quarter * shape.instances + instance;
    return values[place + four / 4u][four % 4u];
}

// What the four quarters of a chunk left, in order.
fn joined(place: u32, instance: u32) -> vec4<f32> {
    var total = turn_value(place, 0u, instance);
    total += turn_value(place, 1u, instance);
    total += turn_value(place, 2u, instance);
    total += turn_value(place, 3u, instance);
    return total;
}
