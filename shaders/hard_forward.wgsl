// One CA step of the hard circuit, 32 samples per word: words -> next_words.
//
//     node = f00 & ~a & ~b | f01 & ~a & b | f10 & a & ~b | f11 & a & b    f: the bits of the gate's id
//
// Twin: difflogic/reference/kernels/hard_forward.py
// Dispatch: x = at most models * chunks / LANES workgroups, which loop.
// Shapes, per model: wires [instances] (a, b); gate_ids [gates]; masks [T, H*W];
//     words, next_words [chunks, C, 16]; hard_nodes [workgroups, nodes, LANES], scratch.
#import common/shape.wgsl
#import common/grid.wgsl
#import common/states.wgsl
#import common/masks.wgsl
#import common/tile.wgsl
#import common/trees.wgsl

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<uniform> at: StepRange;
@group(0) @binding(2) var<storage, read> wires: array<vec2<u32>>;
@group(0) @binding(3) var<storage, read> gate_ids: array<u32>;
@group(0) @binding(4) var<storage, read> masks: array<f32>;
@group(0) @binding(5) var<storage, read> words: array<u32>;
@group(0) @binding(6) var<storage, read_write> next_words: array<u32>;
@group(0) @binding(7) var<storage, read_write> hard_nodes: array<WordChunk>;

fn patch_word(model: u32, cell: u32, channel: u32, f: u32) -> u32 {
    if cell >= shape.cells { return 0u; }
    let there = neighbour(cell, i32(f / 3u) - 1, i32(f % 3u) - 1);
    if there == OUTSIDE { return 0u; }
    return words[state_index(model, there, channel)];
}

fn patch_words(model: u32, cell: u32, patch_node: u32) -> vec4<u32> {
    let channel = patch_node / PATCH;
    let f = patch_node % PATCH;
    var patches = vec4<u32>();
    for (var i = 0u; i < rolled(4u); i++) { patches[i] = patch_word(model, cell + i, channel, f); }
    return patches;
}

// Each of the id's bits as a whole word.
// 0 - 1 is all ones. A gate's outputs for 00, 01, 10 and 11 then choose among 32 samples at once.
fn truth_words(id: u32) -> vec4<u32> {
    return vec4<u32>() - (vec4<u32>(id >> 3u, id >> 2u, id >> 1u, id) & vec4<u32>(1u));
}

fn gate(f: vec4<u32>, a: vec4<u32>, b: vec4<u32>) -> vec4<u32> {
    return (~a & ((~b & vec4<u32>(f.x)) | (b & vec4<u32>(f.y)))) | (a & ((~b & vec4<u32>(f.z)) | (b & vec4<u32>(f.w))));
}

fn wire(model: u32, instance: u32) -> vec2<u32> {
    return wires[model * shape.instances + instance];
}

fn gate_words(model: u32, id: u32) -> vec4<u32> {
    return truth_words(gate_ids[model * shape.gates + id]);
}

fn evaluate_trees(model: u32, tree: u32, first: u32, base: u32) {
    let t = tree_at(model, tree);
    let f = array<vec4<u32>, 7>(
        gate_words(model, t.left.x), gate_words(model, t.left.y), gate_words(model, t.right.x),
        gate_words(model, t.right.y), gate_words(model, t.below.x), gate_words(model, t.below.y),
        gate_words(model, t.root));
    for (var one = tree; one < tree + trees_in_a_row(); one++) {
        let channel = one % shape.channels;
        let centre = patch_at(channel, CENTRE, base);
        let a0 = patch_at(channel, t.a[0], base);
        let a1 = patch_at(channel, t.a[1], base);
        let a2 = patch_at(channel, t.a[2], base);
        let a3 = patch_at(channel, t.a[3], base);
        let out = base + (shape.patch_nodes + one) * LANES;
        for (var j = first; j < rolled(first + quarters()); j++) {
            let b = hard_nodes[centre][j];
            let left = gate(f[4], gate(f[0], hard_nodes[a0][j], b), gate(f[1], hard_nodes[a1][j], b));
            let right = gate(f[5], gate(f[2], hard_nodes[a2][j], b), gate(f[3], hard_nodes[a3][j], b));
            hard_nodes[out][j] = gate(f[6], left, right);
        }
    }
}

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let lane = thread % LANES;
    let base = first_place(workgroup.x * shape.nodes, lane);
    let tiles = shape.chunks / LANES;
    for (var task = at.first + workgroup.x; task < at.end; task += workgroups.x) {
        let model = task / tiles;
        let cell = (task % tiles * LANES + lane) * CELLS_PER_CHUNK;
        for (var item = worker(thread); item < shape.patch_nodes * 4u; item += workers()) {
            hard_nodes[base + item / 4u * LANES][item % 4u] = patch_words(model, cell + item % 4u * 4u, item / 4u);
        }
        chunk_barrier();
        if TREES == 1u {
            let each = quarters_in_a_row();
            for (var item = worker(thread) * each; item < trees() * 4u; item += workers() * each) {
                evaluate_trees(model, item / 4u, first_quarter(item), base);
            }
            chunk_barrier();
        }
        for (var l = shape.tree_levels; l < shape.levels; l++) {
            let level = shape.level_table[l];
            for (var item = worker(thread) * quarters(); item < level.y * 4u; item += workers() * quarters()) {
                let instance = level.x + item / 4u;
                let first = first_quarter(item);
                let f = gate_words(model, gate_of(level, instance));
                let from_nodes = wire(model, instance) * LANES + base;
                let a = from_nodes.x;
                let b = from_nodes.y;
                let out = base + node_of(instance) * LANES;
                for (var j = first; j < rolled(first + quarters()); j++) {
                    hard_nodes[out][j] = gate(f, hard_nodes[a][j], hard_nodes[b][j]);
                }
            }
            chunk_barrier();
        }
        for (var item = worker(thread); item < shape.channels * CELLS_PER_CHUNK; item += workers()) {
            let channel = item / CELLS_PER_CHUNK;
            let i = item % CELLS_PER_CHUNK;
            var value = hard_nodes[base + (shape.nodes - shape.channels + channel) * LANES][i / 4u][i % 4u];
            if keeps_old_state(model, at.step, cell + i) {
                value = words[state_index(model, cell + i, channel)];
            }
            next_words[state_index(model, cell + i, channel)] = value;
        }
        chunk_barrier();
    }
}
