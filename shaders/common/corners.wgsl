// Damage squares that are zeroed during a rollout: corners [models, D, samples] of (row, column), first those of the
// evaluation grids, in groups of 32, then those of the training batch. Needs `shape`, `corners`.

fn corner_index(model: u32, damage: u32, sample: u32) -> u32 {
    return (model * shape.damages + damage) * shape.corner_samples + sample;
}

// Index of a training sample, after the groups of the evaluation grids.
fn of_batch(sample: u32) -> u32 {
    return shape.probe_groups * WORD + sample;
}

// Cell of a value in the squares of the batch, or OUTSIDE beyond the border; values are numbered by square, row, column
// and channel.
fn damaged_cell(model: u32, damage: u32, value: u32) -> u32 {
    let side = shape.damage_side;
    let place = value / shape.channels;
    let sample = place / (side * side);
    let corner = corners[corner_index(model, damage, of_batch(sample))];
    let row = corner.x + place / side % side;
    let col = corner.y + place % side;
    if row >= shape.height || col >= shape.width { return OUTSIDE; }
    return (sample * shape.height + row) * shape.width + col;
}
