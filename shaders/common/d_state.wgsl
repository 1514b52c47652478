// The adjoint of a cell's state, gathered from what the step after left. Needs `shape` and `d_next`.
#import common/grid.wgsl
#import common/d_rows.wgsl

// A cell is position f of the patch of the neighbour that lies opposite f; of three in a row, most are summed already.
fn d_state(model: u32, cell: u32, channel: u32) -> f32 {
    var sum = 0.0;
    // In row 0 of a patch stands what is meant for the row above, so a cell looks for it one row below itself, and so
    // on.
    for (var dy = 0u; dy < rolled(3u); dy++) {
        let there = neighbour(cell, 1 - i32(dy), 0);
        if there == OUTSIDE { continue; }
        let row = 3u * channel + dy;
        sum += d_next[d_row_index(model, there, row) + there % CELLS_PER_CHUNK];
        if begins_piece(there) {
            let left = neighbour(there, 0, -1);
            if left != OUTSIDE { sum += d_next[d_row_index(model, left, row) + border(left) + 1u]; }
        }
        if ends_piece(there) {
            let right = neighbour(there, 0, 1);
            if right != OUTSIDE { sum += d_next[d_row_index(model, right, row) + border(right)]; }
        }
    }
    return sum;
}
