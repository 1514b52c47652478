// Index of a value in the state of a step, [models, chunks, C, 16]. Needs `shape`.

// The sixteen cells of a chunk lie side by side in each channel: neighbouring invocations read neighbouring numbers.
fn state_index(model: u32, cell: u32, channel: u32) -> u32 {
    let chunk = model * shape.chunks + cell / CELLS_PER_CHUNK;
    return (chunk * shape.channels + channel) * CELLS_PER_CHUNK + cell % CELLS_PER_CHUNK;
}
