// Where a state's values lie: [models, T+1, chunks, C, 16]. Needs `shape`.

fn state_index(model: u32, step: u32, cell: u32, channel: u32) -> u32 {
    let chunk = (model * (shape.steps + 1u) + step) * shape.chunks + cell / CELLS_PER_CHUNK;
    return (chunk * shape.channels + channel) * CELLS_PER_CHUNK + cell % CELLS_PER_CHUNK;
}
