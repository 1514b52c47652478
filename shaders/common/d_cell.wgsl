// All adjoints that are sent to one cell, where they stand in `d_rows`. Needs it, common/grid.wgsl, common/d_rows.wgsl.

// A factor of 0 clears what is not finite as well.
fn scale(at: u32, factor: f32) {
    d_rows[at] = select(factor * d_rows[at], 0.0, factor == 0.0);
}

// Everything that `d_state` in common/d_states.wgsl reads for the cell.
fn scale_d_cell(model: u32, cell: u32, channel: u32, factor: f32) {
    for (var dy = 0u; dy < 3u; dy++) {
        let there = neighbour(cell, 1 - i32(dy), 0);
        if there == OUTSIDE { continue; }
        let row = 3u * channel + dy;
        scale(d_row_index(model, there, row) + there % CELLS_PER_CHUNK, factor);
        if begins_piece(there) {
            let left = neighbour(there, 0, -1);
            if left != OUTSIDE { scale(d_row_index(model, left, row) + border(left) + 1u, factor); }
        }
        if ends_piece(there) {
            let right = neighbour(there, 0, 1);
            if right != OUTSIDE { scale(d_row_index(model, right, row) + border(right), factor); }
        }
    }
}
