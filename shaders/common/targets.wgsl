// Index of a target in [models, J, chunks, loss_channels, 16], where J is 1 or the number of evaluated steps.
// Needs `shape`, `state`, `targets`.

// Target value that the loss ignores. Reference: difflogic/core/bits.py
const IGNORED = -1267650600228229401496703205376.0;

fn target_index(model: u32, place: u32, cell: u32, channel: u32) -> u32 {
    let chunk = (model * shape.targets + place) * shape.chunks + cell / CELLS_PER_CHUNK;
    return (chunk * shape.loss_channels + channel) * CELLS_PER_CHUNK + cell % CELLS_PER_CHUNK;
}

// y - target, or 0 for an ignored target and past the last cell.
fn target_error(model: u32, place: u32, cell: u32, channel: u32) -> f32 {
    if cell >= shape.cells { return 0.0; }
    let target_ = targets[target_index(model, place, cell, channel)];
    return select(state[state_index(model, cell, channel)] - target_, 0.0, target_ == IGNORED);
}
