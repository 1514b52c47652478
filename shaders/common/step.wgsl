// The values of all nodes of a chunk in one CA step. Twin: difflogic/reference/kernels/gate_forward.py
// Needs `shape`, `coefficients`, `values`, and the functions `wire(model, place)`,
// `instance_at(model, place)` and `state_value(index)`.
#import common/grid.wgsl
#import common/states.wgsl
#import common/tile.wgsl
#import common/trees.wgsl

// 1: the forward pass keeps every node's value for the backward pass. 0: that computes them again.
override KEEP: u32 = 1u;
// 1: the backward pass sees node values in 16 bits, and so they are kept.
override HALF: u32 = 0u;
// 1: a cell sees its patch. 0: only itself, as the samples of a feed-forward circuit do; a channel is one patch node.
override PERCEIVES: u32 = 1u;

fn patch_value(model: u32, cell: u32, channel: u32, f: u32) -> f32 {
    if cell >= shape.cells { return 0.0; }
    if PERCEIVES == 0u { return state_value(state_index(model, cell, channel)); }
    let there = neighbour(cell, i32(f / 3u) - 1, i32(f % 3u) - 1);
    if there == OUTSIDE { return 0.0; }
    return state_value(state_index(model, there, channel));
}

fn patch_values(model: u32, cell: u32, patch_node: u32) -> vec4<f32> {
    let channel = select(patch_node, patch_node / PATCH, PERCEIVES == 1u);
    let f = select(CENTRE, patch_node % PATCH, PERCEIVES == 1u);
    var patches = vec4<f32>();
    for (var i = 0u; i < rolled(4u); i++) { patches[i] = patch_value(model, cell + i, channel, f); }
    return patches;
}

fn gate(c: vec4<f32>, a: vec4<f32>, b: vec4<f32>) -> vec4<f32> {
    // Three fused multiply-adds, for four cells at once.
    return c.x + c.y * a + (c.z + c.w * a) * b;
}

fn tree_coefficients(model: u32, t: Tree) -> array<vec4<f32>, 7> {
    let first = model * shape.gates;
    return array<vec4<f32>, 7>(
        coefficients[first + t.left.x], coefficients[first + t.left.y],
        coefficients[first + t.right.x], coefficients[first + t.right.y],
        coefficients[first + t.below.x], coefficients[first + t.below.y], coefficients[first + t.root]);
}

// A root's value in four cells.
fn tree_value(a: array<u32, 4>, centre: u32, c: array<vec4<f32>, 7>, quarter: u32) -> vec4<f32> {
    let b = values[centre][quarter];
    let left = gate(c[4], gate(c[0], values[a[0]][quarter], b), gate(c[1], values[a[1]][quarter], b));
    let right = gate(c[5], gate(c[2], values[a[2]][quarter], b), gate(c[3], values[a[3]][quarter], b));
    return gate(c[6], left, right);
}

fn evaluate(model: u32, chunk: u32, base: u32, thread: u32) {
    let cell = chunk * CELLS_PER_CHUNK;
    for (var item = worker(thread); item < shape.patch_nodes * 4u; item += workers()) {
        values[base + item / 4u * LANES][item % 4u] = patch_values(model, cell + item % 4u * 4u, item / 4u);
    }
    chunk_barrier();
    if TREES == 1u {
        let each = quarters_in_a_row();
        for (var item = worker(thread) * each; item < trees() * 4u; item += workers() * each) {
            let tree = item / 4u;
            let first = first_quarter(item);
            let t = tree_at(model, tree);
            let c = tree_coefficients(model, t);
            for (var one = tree; one < tree + trees_in_a_row(); one++) {
                let channel = one % shape.channels;
                let centre = patch_at(channel, CENTRE, base);
                let a = array<u32, 4>(
                    patch_at(channel, t.a[0], base), patch_at(channel, t.a[1], base),
                    patch_at(channel, t.a[2], base), patch_at(channel, t.a[3], base));
                let node = base + (shape.patch_nodes + one) * LANES;
                for (var j = first; j < rolled(first + quarters()); j++) { values[node][j] = tree_value(a, centre, c, j); }
            }
        }
        chunk_barrier();
    }
    // A level reads only what earlier levels wrote, so that one barrier between two levels is enough, and none where an
    // invocation has its chunk to itself.
    for (var l = shape.tree_levels; l < shape.levels; l++) {
        let level = shape.level_table[l];
        for (var item = worker(thread) * quarters(); item < level.y * 4u; item += workers() * quarters()) {
            let place = level.x + item / 4u;
            let instance = instance_at(model, place);
            let first = first_quarter(item);
            let from_nodes = wire(model, place) * LANES + base;
            let c = coefficients[model * shape.gates + gate_of(level, instance)];
            let a = from_nodes.x;
            let b = from_nodes.y;
            let node = base + node_of(instance) * LANES;
            for (var j = first; j < rolled(first + quarters()); j++) { values[node][j] = gate(c, values[a][j], values[b][j]); }
        }
        chunk_barrier();
    }
}
