// Adjoints of patches: [models, 2, chunks, 9*C, 16]. The halves take turns; the loss leaves step T's
// in half T % 2. Needs `shape`.

fn d_patch_index(model: u32, step: u32, cell: u32, patch_node: u32) -> u32 {
    let chunk = (model * 2u + step % 2u) * shape.chunks + cell / CELLS_PER_CHUNK;
    return (chunk * shape.patch_nodes + patch_node) * CELLS_PER_CHUNK + cell % CELLS_PER_CHUNK;
}
