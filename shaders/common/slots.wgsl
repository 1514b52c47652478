// What a node's readers sent to it. Twin: difflogic/reference/kernels/gate_backward.py
// Needs `shape`, `edges`, `values`, `near`, `d_rows`, `d_states`.

// Under SPLIT only the slots of the patch lie in storage, which the last barrier of a step makes visible; those of the
// two levels that are at work lie in workgroup memory.
fn stored_slot(slot: u32, base: u32, quarter: u32) -> vec4<f32> {
    let place = place_of(slot, shape.slots, base, quarter);
    return values[place.chunk][place.four];
}

fn put_slot(slot: u32, base: u32, quarter: u32, d: vec4<f32>) {
    if SPLIT == 1u && slot >= shape.slots {
        near[slot - shape.slots] = d;
    } else {
        let place = place_of(slot, shape.slots, base, quarter);
        values[place.chunk][place.four] = d;
    }
}

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
    var slot = fanout.x;
    if SPLIT == 1u {
        // In the same order, but with four loads under way: a patch node has some twenty slots.
        for (; slot + 4u <= fanout.y; slot += 4u) {
            let d0 = stored_slot(slot, base, quarter);
            let d1 = stored_slot(slot + 1u, base, quarter);
            let d2 = stored_slot(slot + 2u, base, quarter);
            let d3 = stored_slot(slot + 3u, base, quarter);
            d = (((d + d0) + d1) + d2) + d3;
        }
    }
    for (; slot < fanout.y; slot++) { d += stored_slot(slot, base, quarter); }
    return d;
}

// Of a node that is no patch node, what its readers in the level behind it sent.
fn sum_readers(fanout: vec2<u32>, base: u32, quarter: u32) -> vec4<f32> {
    if SPLIT == 0u { return sum_quarter(fanout, base, quarter); }
    var d = vec4<f32>();
    for (var slot = fanout.x; slot < fanout.y; slot++) { d += near[slot - shape.slots]; }
    return d;
}

fn patch_adjoints(model: u32, node: u32, slots: u32, quarter: u32) -> vec4<f32> {
    // A patch node that no gate reads has an empty range, and its sum is 0.
    return sum_quarter(edges[edge_index(model, shape.instances + node)].fanout, slots, quarter);
}

// The adjoints of three patch nodes, one above, level with or below each of four cells, to those cells' row.
// Row dy of the patch of cell i: `left` goes to cell i - 1 of the row above, level or below, `own` to cell i, `right`
// to cell i + 1. So what cell i of the row gets is own[i] + right[i - 1] + left[i + 1], always added in this order; at
// the ends of a piece the neighbour's share is missing, and the own one that leaves is put behind the sixteen.
fn send_row(model: u32, cell: u32, row: u32, slots: u32, quarter: u32) {
    let left = patch_adjoints(model, 3u * row, slots, quarter);
    var own = patch_adjoints(model, 3u * row + 1u, slots, quarter);
    let right = patch_adjoints(model, 3u * row + 2u, slots, quarter);
    if shape.asynchronous == 1u && row % 3u == 1u { own += d_states(model, cell, row / 3u, true); }
    var from_left = vec4<f32>(0.0, right.xyz);
    var from_right = vec4<f32>(left.yzw, 0.0);
    if shape.piece > 4u {
        if quarter > 0u { from_left.x = patch_adjoints(model, 3u * row + 2u, slots, quarter - 1u).w; }
        if quarter < 3u { from_right.w = patch_adjoints(model, 3u * row, slots, quarter + 1u).x; }
    }
    for (var i = 0u; i < rolled(4u); i++) {
        put_in_row(d_row_index(model, cell, row), cell + i, vec3<f32>(left[i], own[i], right[i]), from_left[i], from_right[i]);
    }
}

// `d`: what the cell's own patch sends to the left, to its own column and to the right.
fn put_in_row(to: u32, cell: u32, d: vec3<f32>, from_left: f32, from_right: f32) {
    var sum = d.y;
    if begins_piece(cell) { d_rows[to + border(cell)] = d.x; } else { sum += from_left; }
    if ends_piece(cell) { d_rows[to + border(cell) + 1u] = d.z; } else { sum += from_right; }
    d_rows[to + cell % CELLS_PER_CHUNK] = sum;
}

// All rows of a chunk. Under SPLIT pieces are quarters, and an invocation sums the slots of a patch node first; then it
// has a cell of a row.
fn send_rows(model: u32, first_cell: u32, slots: u32, thread: u32) {
    if SPLIT == 0u {
        for (var item = worker(thread); item < 12u * shape.channels; item += workers()) {
            send_row(model, first_cell + item % 4u * 4u, item / 4u, slots, item % 4u);
        }
        return;
    }
    let cell = first_cell + first_quarter * 4u;
    for (var node = thread; node < shape.patch_nodes; node += WG) {
        near[node] = patch_adjoints(model, node, slots, first_quarter);
    }
    workgroupBarrier();
    for (var item = thread; item < 12u * shape.channels; item += WG) {
        let row = item / 4u;
        let i = item % 4u;
        let left = near[3u * row];
        let right = near[3u * row + 2u];
        var d = vec3<f32>(left[i], near[3u * row + 1u][i], right[i]);
        if shape.asynchronous == 1u && row % 3u == 1u { d.y += d_reaching(model, cell + i, row / 3u, true); }
        put_in_row(d_row_index(model, cell, row), cell + i, d, right[max(i, 1u) - 1u], left[min(i + 1u, 3u)]);
    }
}

// Without perception: the adjoint of each of a cell's own values.
fn send_cells(model: u32, chunk: u32, slots: u32, thread: u32) {
    for (var item = worker(thread); item < shape.channels * quarters(); item += workers()) {
        let channel = item / quarters();
        let quarter = first_quarter + item % quarters();
        let d = patch_adjoints(model, channel, slots, quarter);
        let first = ((model * shape.chunks + chunk) * shape.channels + channel) * CELLS_PER_CHUNK + quarter * 4u;
        for (var i = 0u; i < 4u; i++) { d_rows[first + i] = d[i]; }
    }
}
