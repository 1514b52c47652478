// The 3x3 Moore neighbourhood, and the places of values. Needs `shape`. Reference: difflogic/reference/kernels/grid.py

const OUTSIDE = 0xffffffffu;

// Cell at offset (dy, dx), each in {-1, 0, 1}, from `cell`; OUTSIDE beyond a zero boundary.
fn neighbour(cell: u32, dy: i32, dx: i32) -> u32 {
    let height = i32(shape.height);
    let width = i32(shape.width);
    let grid = cell / shape.grid;
    let place = i32(cell % shape.grid);
    var row = place / width + dy;
    var col = place % width + dx;
    // `+ height` first: in WGSL, as in C, -1 % height is -1.
    if shape.periodic == 1u {
        row = (row + height) % height;
        col = (col + width) % width;
    } else if row < 0 || row >= height || col < 0 || col >= width {
        return OUTSIDE;
    }
    return (grid * shape.height + u32(row)) * shape.width + u32(col);
}

// Index of a value in the state of a step, [models, chunks, C, 16]. The sixteen cells of a chunk are adjacent in each
// channel, so that neighbouring invocations read adjacent values.
fn state_index(model: u32, cell: u32, channel: u32) -> u32 {
    let chunk = model * shape.chunks + cell / CELLS_PER_CHUNK;
    return (chunk * shape.channels + channel) * CELLS_PER_CHUNK + cell % CELLS_PER_CHUNK;
}
