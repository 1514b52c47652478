// Damage squares that are zeroed during a rollout: corners [models, D, samples] of (row, column), first those of the
// evaluation grids, in groups of 32, then those of the training batch. Needs `shape`.

// Step of a state, and its indices in the lists of damaged and evaluated states, if any.
struct EventIndex { damage: u32, judged: u32, step: u32 }

fn corner_index(model: u32, damage: u32, sample: u32) -> u32 {
    return (model * shape.damages + damage) * shape.corner_samples + sample;
}

// Index of a training sample, after the groups of the evaluation grids.
fn of_batch(sample: u32) -> u32 {
    return shape.probe_groups * WORD + sample;
}

// Cell of a square; `item` counts the cells of squares, row by row, square by square. OUTSIDE beyond the border.
fn square_cell(corner: vec2<u32>, item: u32) -> u32 {
    let side = shape.damage_side;
    let row = corner.x + item / side % side;
    let col = corner.y + item % side;
    if row >= shape.height || col >= shape.width { return OUTSIDE; }
    return (item / (side * side) * shape.height + row) * shape.width + col;
}
