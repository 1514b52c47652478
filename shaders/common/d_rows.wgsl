// Adjoints of patches, summed along each row as far as a chunk knows its row: [models, chunks, 3*C, halo].
//
// Row `3 * channel + dy` of a chunk holds, for each of its cells, what the patches of that cell and of its
// left and right neighbours send to the cell dy - 1 rows on; a neighbour counts if it lies in the chunk
// and in the same row and quarter of the chunk. What leaves that stands behind the 16: for each of the
// chunk's pieces of rows what its first cell sends to the left and its last cell to the right. Pieces end with quarters,
// since four workgroups may share a chunk, a quarter each; on a grid so large that there would be no room for it, with
// chunks.
// Why rows: of the nine adjoints of a patch, three go to the row above, three to its own and three to the row below.
// Added along each row at once, three numbers to a cell and channel are passed on to the next dispatch, not nine.
//
// A grid 7 wide, chunk 1, cells 16 to 31: columns 2-6 of row 2, all of row 3, columns 0-3 of row 4. Its quarters are cells
// 16-19, 20-23, 24-27, 28-31, so that its pieces are columns 2-5 and 6 of row 2, 0-2 and 3-6 of row 3, 0-3 of row 4. In
// row `3 * channel + 1`, the 16 numbers are what goes to cells 16 to 31 themselves. Behind them stands a pair for each
// piece: what its first cell sends to the left, its last cell to the right. A piece of quarter q, in the chunk's row r, has
// pair q + r, which grows from piece to piece: here 0, 1, 2, 3 and 5. On a torus what leaves at one end of a row arrives at
// the other, else it is dropped: that is for whoever gathers to know (common/d_states.wgsl).
// Needs `shape`.

fn d_row_index(model: u32, cell: u32, row: u32) -> u32 {
    let chunk = model * shape.chunks + cell / CELLS_PER_CHUNK;
    return (chunk * 3u * shape.channels + row) * shape.halo;
}

// Where in a halo the adjoint stands that leaves the cell's piece of a row to the left, or (+1) the right.
fn border(cell: u32) -> u32 {
    let place = cell % CELLS_PER_CHUNK;
    return CELLS_PER_CHUNK + 2u * (place / shape.piece + cell / shape.width - (cell - place) / shape.width);
}

fn begins_piece(cell: u32) -> bool {
    return cell % shape.piece == 0u || cell % shape.width == 0u;
}

fn ends_piece(cell: u32) -> bool {
    return begins_piece(cell + 1u);
}
