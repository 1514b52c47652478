// Adjoints of the patch nodes of each cell: [models, chunks, patch nodes, 16].
#import common/grid.wgsl

fn d_patch_index(model: u32, cell: u32, node: u32) -> u32 {
    let chunk = model * shape.chunks + cell / CELLS_PER_CHUNK;
    return (chunk * shape.patch_nodes + node) * CELLS_PER_CHUNK + cell % CELLS_PER_CHUNK;
}

// The neighbour whose patch has the cell at position f: it lies on the other side.
fn patch_reader(cell: u32, f: u32) -> u32 {
    return neighbour(cell, 1 - i32(f / 3u), 1 - i32(f % 3u));
}
