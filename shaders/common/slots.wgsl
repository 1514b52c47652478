// Slots: adjoints that the readers of a node send to it. Reference: difflogic/reference/kernels/gate_backward.py
// Needs `shape`, `edges`, `kept`, `values`, `near`, `d_patches`, `d_states`.

// Values of nodes that the forward pass has stored, or that have been recomputed.
fn input(node: u32, base: u32, quarter: u32) -> vec4<f32> {
    if KEEP == 0u { return stored(node, shape.nodes, base, quarter); }
    let place = place_of(node, shape.nodes, base, quarter);
    return bitcast<vec4<f32>>(kept[place.chunk][place.four]);
}

fn inputs(node: u32, base: u32) -> Chunk {
    return Chunk(input(node, base, 0u), input(node, base, 1u), input(node, base, 2u), input(node, base, 3u));
}

// Index in `near` of a node that a level reads while a step is recomputed under SPLIT.
fn near_input(level: u32, node: u32) -> u32 {
    if node < shape.patch_nodes { return node; }
    return near_level(level - 1u) + node - node_of(shape.level_table[level - 1u].x);
}

// Under SPLIT only the slots of the patch are in storage, which the last barrier of a step makes visible; those of the
// two levels in progress are in workgroup memory.
fn put_slot(slot: u32, base: u32, quarter: u32, d: vec4<f32>) {
    if SPLIT == 1u && slot >= shape.slots {
        near[near_at(slot - shape.slots, quarter)] = d;
    } else {
        store(slot, shape.slots, base, quarter, d);
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

// Sum for four cells, used if an invocation needs registers for much else: little code and few registers are faster.
fn sum_quarter(fanout: vec2<u32>, base: u32, quarter: u32) -> vec4<f32> {
    var d = vec4<f32>();
    var slot = fanout.x;
    if SPLIT == 1u {
        // In the same order, but with four loads pending at a time: a patch node has some twenty slots.
        for (; slot + 4u <= fanout.y; slot += 4u) {
            let d0 = stored(slot, shape.slots, base, quarter);
            let d1 = stored(slot + 1u, shape.slots, base, quarter);
            let d2 = stored(slot + 2u, shape.slots, base, quarter);
            let d3 = stored(slot + 3u, shape.slots, base, quarter);
            d = (((d + d0) + d1) + d2) + d3;
        }
    }
    for (; slot < fanout.y; slot++) { d += stored(slot, shape.slots, base, quarter); }
    return d;
}

// Adjoint of a node after the patch: the sum of the slots that its readers in the next level have written.
fn sum_readers(fanout: vec2<u32>, base: u32, quarter: u32) -> vec4<f32> {
    if SPLIT == 0u { return sum_quarter(fanout, base, quarter); }
    var d = vec4<f32>();
    for (var slot = fanout.x; slot < fanout.y; slot++) { d += near[near_at(slot - shape.slots, quarter)]; }
    return d;
}

fn patch_adjoints(model: u32, node: u32, slots: u32, quarter: u32) -> vec4<f32> {
    // A patch node that no gate reads has an empty range, and its sum is 0.
    return sum_quarter(edges[edge_index(model, shape.instances + node)].fanout, slots, quarter);
}

// Store the adjoints of a chunk's patch nodes, which the neighbours then gather; without perception, they are those of
// the cell's own values. A cell that keeps its old state passes its adjoint on to the centre of its own patch.
fn send_patches(model: u32, chunk: u32, slots: u32, thread: u32) {
    for (var item = worker(thread); item < shape.patch_nodes * quarters(); item += workers()) {
        let node = item / quarters();
        let quarter = first_quarter + item % quarters();
        var d = patch_adjoints(model, node, slots, quarter);
        if PERCEIVES == 1u && shape.asynchronous == 1u && node % PATCH == CENTRE {
            d += d_states(model, chunk * CELLS_PER_CHUNK + quarter * 4u, node / PATCH, true);
        }
        d_patches[((model * shape.chunks + chunk - at.window) * shape.patch_nodes + node) * 4u + quarter] = d;
    }
}
