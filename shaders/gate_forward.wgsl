// One CA step of the soft circuit, all levels fused: states[step] -> states[step + 1].
//
//     node = c0 + ca*a + cb*b + cab*a*b
//
// Twin: difflogic/reference/gate_forward.py
// Dispatch: x = chunks / LANES, at most 65535, then the workgroup loops; y = model.
// Shapes, per model: wires [instances] (a, b); coefficients [gates]; masks [T, H*W];
//     states [T+1, chunks, C, 16]; nodes [chunks, nodes], every node's value for the backward pass.
#import common/shape.wgsl
#import common/grid.wgsl
#import common/states.wgsl
#import common/masks.wgsl
#import common/tile.wgsl

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<uniform> at: At;
@group(0) @binding(2) var<storage, read> wires: array<vec2<u32>>;
@group(0) @binding(3) var<storage, read> coefficients: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> masks: array<f32>;
@group(0) @binding(5) var<storage, read_write> states: array<f32>;
@group(0) @binding(6) var<storage, read_write> nodes: array<Chunk>;

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

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let model = workgroup.y;
    for (var tile = workgroup.x; tile < shape.chunks / LANES; tile += workgroups.x) {
        let chunk = tile * LANES + thread % LANES;
        let base = (model * shape.chunks + chunk) * shape.nodes;
        let cell = chunk * CELLS_PER_CHUNK;
        for (var item = worker(thread); item < shape.patch_nodes * 4u; item += workers()) {
            nodes[base + item / 4u][item % 4u] = patch_values(model, cell + item % 4u * 4u, item / 4u);
        }
        chunk_barrier();
        for (var l = 0u; l < shape.levels; l++) {
            let level = shape.level_table[l];
            for (var i = worker(thread); i < level.y; i += workers()) {
                let instance = level.x + i;
                let wire = wires[model * shape.instances + instance];
                let c = coefficients[model * shape.gates + level.z + i / level.w];
                let a = base + wire.x;
                let b = base + wire.y;
                let out = base + shape.patch_nodes + instance;
                nodes[out][0] = gate(c, nodes[a][0], nodes[b][0]);
                nodes[out][1] = gate(c, nodes[a][1], nodes[b][1]);
                nodes[out][2] = gate(c, nodes[a][2], nodes[b][2]);
                nodes[out][3] = gate(c, nodes[a][3], nodes[b][3]);
            }
            chunk_barrier();
        }
        for (var item = worker(thread); item < shape.channels * CELLS_PER_CHUNK; item += workers()) {
            let channel = item / CELLS_PER_CHUNK;
            let i = item % CELLS_PER_CHUNK;
            var value = nodes[base + shape.nodes - shape.channels + channel][i / 4u][i % 4u];
            if keeps_old_state(model, at.step, cell + i) {
                value = states[state_index(model, at.step, cell + i, channel)];
            }
            states[state_index(model, at.step + 1u, cell + i, channel)] = value;
        }
    }
}
