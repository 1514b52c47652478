// Adjoints that a backward step passes on for each cell, [models, chunks, C * adjoints, 16]: those of its patch nodes.
// If a device cannot bind those of all patches, `d_start` has gathered them, and there is one adjoint per channel.

fn d_patch_index(model: u32, cell: u32, node: u32) -> u32 {
    let chunk = model * shape.chunks + cell / CELLS_PER_CHUNK;
    return (chunk * shape.channels * shape.adjoints + node) * CELLS_PER_CHUNK + cell % CELLS_PER_CHUNK;
}

// Neighbour whose patch contains the cell at position f, on the opposite side.
fn patch_reader(cell: u32, f: u32) -> u32 {
    if shape.adjoints == 1u { return cell; }
    return neighbour(cell, 1 - i32(f / 3u), 1 - i32(f % 3u));
}
