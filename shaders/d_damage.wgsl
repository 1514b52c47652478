// No adjoint reaches a zeroed cell: what neighbours' patches send there is cleared.
// Twin: difflogic/reference/kernels/d_damage.py
// Dispatch: x = ceil(values / WG), at most 65535, then invocations loop; y = model.
// Shapes, per model: corners [D, samples]; d_rows [chunks, 3*C, halo].
#import common/shape.wgsl
#import common/grid.wgsl
#import common/corners.wgsl
#import common/d_rows.wgsl
#import common/linear.wgsl

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<uniform> mark: EventIndex;
@group(0) @binding(2) var<storage, read> corners: array<vec2<u32>>;
@group(0) @binding(3) var<storage, read_write> d_rows: array<f32>;

// Everything that `d_state` in common/d_states.wgsl reads for the cell.
fn clear(model: u32, cell: u32, channel: u32) {
    for (var dy = 0u; dy < 3u; dy++) {
        let there = neighbour(cell, 1 - i32(dy), 0);
        if there == OUTSIDE { continue; }
        let row = 3u * channel + dy;
        d_rows[d_row_index(model, there, row) + there % CELLS_PER_CHUNK] = 0.0;
        if begins_piece(there) {
            let left = neighbour(there, 0, -1);
            if left != OUTSIDE { d_rows[d_row_index(model, left, row) + border(left) + 1u] = 0.0; }
        }
        if ends_piece(there) {
            let right = neighbour(there, 0, 1);
            if right != OUTSIDE { d_rows[d_row_index(model, right, row) + border(right)] = 0.0; }
        }
    }
}

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) workgroups: vec3<u32>) {
    let square = shape.damage_side * shape.damage_side;
    for (var item = id.x; item < shape.batch * square * shape.channels; item += workgroups.x * WG) {
        let sample = item / (square * shape.channels);
        let cell = square_cell(corners[corner_index(id.y, mark.damage, of_batch(sample))], item / shape.channels);
        if cell != OUTSIDE { clear(id.y, cell, item % shape.channels); }
    }
}
