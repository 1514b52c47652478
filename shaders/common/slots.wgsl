// What a node's readers sent to it. Twin: difflogic/reference/kernels/gate_backward.py
// Needs `shape`, `edges`, `values`, `d_rows`, `d_states`.

fn sum_slots(fanout: vec2<u32>, base: u32) -> Chunk {
    var d0 = vec4<f32>();
    var d1 = vec4<f32>();
    var d2 = vec4<f32>();
    var d3 = vec4<f32>();
    for (var slot = base + fanout.x * LANES; slot < base + fanout.y * LANES; slot += LANES) {
        d0 += values[slot][0];
        d1 += values[slot][1];
        d2 += values[slot][2];
        d3 += values[slot][3];
    }
    return Chunk(d0, d1, d2, d3);
}

// Four cells at a time, where much else is at hand: little code and few registers make it fast.
fn sum_quarter(fanout: vec2<u32>, base: u32, quarter: u32) -> vec4<f32> {
    var d = vec4<f32>();
    for (var slot = base + fanout.x * LANES; slot < base + fanout.y * LANES; slot += LANES) {
        d += values[slot][quarter];
    }
    return d;
}

// Where many share a chunk: a quarter of a patch node's slots each, into its first.
fn sum_patch_slots(model: u32, slots: u32, thread: u32) {
    for (var item = worker(thread); item < shape.patch_nodes * 4u; item += workers()) {
        let fanout = edges[edge_index(model, shape.instances + item / 4u)].fanout;
        if fanout.x < fanout.y { values[slots + fanout.x * LANES][item % 4u] = sum_quarter(fanout, slots, item % 4u); }
    }
}

fn patch_adjoints(model: u32, node: u32, slots: u32) -> Chunk {
    // A patch node that no gate reads has an empty range, and its sum is 0.
    var fanout = edges[edge_index(model, shape.instances + node)].fanout;
    if quarters() == 1u { fanout.y = min(fanout.y, fanout.x + 1u); }  // summed before
    return sum_slots(fanout, slots);
}

// The adjoints of three patch nodes, one above, level with or below each cell, to that cell's row.
// Row dy of the patch of cell i: `left` goes to cell i - 1 of the row above, level or below, `own` to cell i, `right`
// to cell i + 1. So what cell i of the row gets is own[i] + right[i - 1] + left[i + 1], always added in this order; at
// the ends of a piece the neighbour's share is missing, and the own one that leaves is put behind the sixteen.
fn send_row(model: u32, cell: u32, row: u32, slots: u32) {
    var left = patch_adjoints(model, 3u * row, slots);
    var own = patch_adjoints(model, 3u * row + 1u, slots);
    var right = patch_adjoints(model, 3u * row + 2u, slots);
    if shape.asynchronous == 1u && row % 3u == 1u {
        for (var j = 0u; j < rolled(4u); j++) { own[j] += d_states(model, cell + 4u * j, row / 3u, true); }
    }
    let to = d_row_index(model, cell, row);
    var at_border = to + CELLS_PER_CHUNK;
    var column = cell % shape.width;
    for (var i = 0u; i < CELLS_PER_CHUNK; i++) {
        var d = own[i / 4u][i % 4u];
        if i == 0u || column == 0u {
            d_rows[at_border] = left[i / 4u][i % 4u];
        } else {
            d += right[(i - 1u) / 4u][(i - 1u) % 4u];
        }
        column++;
        if i == CELLS_PER_CHUNK - 1u || column == shape.width {
            d_rows[at_border + 1u] = right[i / 4u][i % 4u];
            at_border += 2u;
            column = 0u;
        } else {
            d += left[(i + 1u) / 4u][(i + 1u) % 4u];
        }
        d_rows[to + i] = d;
    }
}

// Without perception: the adjoint of each of a cell's own values.
fn send_cells(model: u32, chunk: u32, slots: u32, thread: u32) {
    for (var item = worker(thread); item < shape.channels * 4u; item += workers()) {
        let d = sum_quarter(edges[edge_index(model, shape.instances + item / 4u)].fanout, slots, item % 4u);
        let first = (model * shape.chunks + chunk) * shape.channels * CELLS_PER_CHUNK + item * 4u;
        for (var i = 0u; i < 4u; i++) { d_rows[first + i] = d[i]; }
    }
}
