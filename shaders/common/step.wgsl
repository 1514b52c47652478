// The values of all nodes of a chunk in one CA step. Twin: difflogic/reference/gate_forward.py
// Needs `shape`, `coefficients`, and the functions `wire(model, instance)`, `state_value(index)`, and, for four
// cells of a node's chunk, `node(index, quarter)` and `set_node(index, quarter, value)`.
#import common/grid.wgsl
#import common/states.wgsl
#import common/tile.wgsl

// 1: the forward pass keeps every node's value for the backward pass. 0: that computes them again.
override KEEP: u32 = 1u;

fn patch_value(model: u32, cell: u32, channel: u32, f: u32) -> f32 {
    if cell >= shape.cells { return 0.0; }
    let there = neighbour(cell, i32(f / 3u) - 1, i32(f % 3u) - 1);
    if there == OUTSIDE { return 0.0; }
    return state_value(state_index(model, there, channel));
}

fn patch_values(model: u32, cell: u32, patch_node: u32) -> vec4<f32> {
    let channel = patch_node / PATCH;
    let f = patch_node % PATCH;
    return vec4<f32>(
        patch_value(model, cell, channel, f), patch_value(model, cell + 1u, channel, f),
        patch_value(model, cell + 2u, channel, f), patch_value(model, cell + 3u, channel, f));
}

fn gate(c: vec4<f32>, a: vec4<f32>, b: vec4<f32>) -> vec4<f32> {
    return c.x + c.y * a + (c.z + c.w * a) * b;
}

fn evaluate(model: u32, chunk: u32, base: u32, thread: u32) {
    let cell = chunk * CELLS_PER_CHUNK;
    for (var item = worker(thread); item < shape.patch_nodes * 4u; item += workers()) {
        set_node(base + item / 4u, item % 4u, patch_values(model, cell + item % 4u * 4u, item / 4u));
    }
    chunk_barrier();
    for (var l = 0u; l < shape.levels; l++) {
        let level = shape.level_table[l];
        for (var i = worker(thread); i < level.y; i += workers()) {
            let instance = level.x + i;
            let from_nodes = wire(model, instance) + base;
            let c = coefficients[model * shape.gates + level.z + i / level.w];
            let a = from_nodes.x;
            let b = from_nodes.y;
            let out = base + shape.patch_nodes + instance;
            set_node(out, 0u, gate(c, node(a, 0u), node(b, 0u)));
            set_node(out, 1u, gate(c, node(a, 1u), node(b, 1u)));
            set_node(out, 2u, gate(c, node(a, 2u), node(b, 2u)));
            set_node(out, 3u, gate(c, node(a, 3u), node(b, 3u)));
        }
        chunk_barrier();
    }
}
