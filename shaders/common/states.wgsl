// Where the values of one step's state lie: [models, chunks, C, 16]. Needs `shape`.

// With 2 channels, cell 17 lies in chunk 1 at place 1: channel 0 at (1*2 + 0)*16 + 1 = 33, channel 1 at 49. The sixteen
// cells of a chunk lie side by side in each channel, and neighbouring invocations read neighbouring numbers.
fn state_index(model: u32, cell: u32, channel: u32) -> u32 {
    let chunk = model * shape.chunks + cell / CELLS_PER_CHUNK;
    return (chunk * shape.channels + channel) * CELLS_PER_CHUNK + cell % CELLS_PER_CHUNK;
}
