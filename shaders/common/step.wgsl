// The values of all nodes of a chunk in one CA step. Twin: difflogic/reference/gate_forward.py
// Needs `shape`, `at`, `coefficients`, `states`, `nodes`, and a function `wire(model, instance)`.
#import common/grid.wgsl
#import common/states.wgsl
#import common/tile.wgsl

// 1: nodes [chunks, nodes] keeps every chunk's values for the backward pass.
// 0: nodes [workgroups, LANES, nodes] is scratch, and the backward pass computes them again.
override KEEP: u32 = 1u;

fn nodes_base(model: u32, chunk: u32, place: u32) -> u32 {
    return select(place, model * shape.chunks + chunk, KEEP == 1u) * shape.nodes;
}

fn patch_value(model: u32, cell: u32, channel: u32, f: u32) -> f32 {
    if cell >= shape.cells { return 0.0; }
    let there = neighbour(cell, i32(f / 3u) - 1, i32(f % 3u) - 1);
    if there == OUTSIDE { return 0.0; }
    return states[state_index(model, at.step, there, channel)];
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
        nodes[base + item / 4u][item % 4u] = patch_values(model, cell + item % 4u * 4u, item / 4u);
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
            nodes[out][0] = gate(c, nodes[a][0], nodes[b][0]);
            nodes[out][1] = gate(c, nodes[a][1], nodes[b][1]);
            nodes[out][2] = gate(c, nodes[a][2], nodes[b][2]);
            nodes[out][3] = gate(c, nodes[a][3], nodes[b][3]);
        }
        chunk_barrier();
    }
}
