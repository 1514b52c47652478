// Adjoints of patches, summed along each row as far as a chunk knows its row: [models, chunks, 3*C, halo].
//
// Row `3 * channel + dy` of a chunk holds, for each of its cells, what the patches of that cell and of its
// left and right neighbours send to the cell dy - 1 rows on; a neighbour counts if it lies in the chunk
// and in the same row. What leaves the chunk, or its row's end, stands behind the 16: for each of the
// chunk's pieces of rows what its first cell sends to the left and its last cell to the right.
// Why rows: of the nine adjoints of a patch, three go to the row above, three to its own and three to the row below.
// Added along each row at once, three numbers to a cell and channel are passed on to the next dispatch, not nine.
//
// A grid 7 wide, chunk 1, cells 16 to 31: its pieces are columns 2-6 of row 2, all of row 3, columns 0-3 of row 4. In
// row `3 * channel + 1`, the 16 numbers are what goes to cells 16 to 31 themselves. Behind them stand three pairs: what
// cell 16 sends to column 1 of row 2, and cell 20 off the end of that row; what cell 21 and cell 27 send off both ends
// of row 3; what cell 28 sends off the beginning of row 4, and cell 31 to its column 4. On a torus what leaves at one
// end of a row arrives at the other, else it is dropped: that is for whoever gathers to know (common/d_states.wgsl).
// Needs `shape`.

fn d_row_index(model: u32, cell: u32, row: u32) -> u32 {
    let chunk = model * shape.chunks + cell / CELLS_PER_CHUNK;
    return (chunk * 3u * shape.channels + row) * shape.halo;
}

// Where in a halo the adjoint stands that leaves the cell's piece of a row to the left, or (+1) the right.
fn border(cell: u32) -> u32 {
    let first = cell - cell % CELLS_PER_CHUNK;
    return CELLS_PER_CHUNK + 2u * (cell / shape.width - first / shape.width);
}

fn begins_piece(cell: u32) -> bool {
    return cell % CELLS_PER_CHUNK == 0u || cell % shape.width == 0u;
}

fn ends_piece(cell: u32) -> bool {
    return begins_piece(cell + 1u);
}
