// One CA step of the hard circuit, 32 samples per word: words -> next_words.
//
//     node = f00 & ~a & ~b | f01 & ~a & b | f10 & a & ~b | f11 & a & b    f: the bits of the gate's id
//
// Twin: difflogic/reference/kernels/hard_forward.py
// Dispatch: x = at most models * chunks / LANES workgroups, which loop; under SPLIT four times as many.
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

#import common/hard_nodes.wgsl

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
    for (var i = 0u; i < rolled_unless_split(4u); i++) { patches[i] = patch_word(model, cell + i, channel, f); }
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

fn evaluate_trees(model: u32, tree: u32, base: u32) {
    let t = tree_at(model, tree);
    let f = array<vec4<u32>, 7>(
        gate_words(model, t.left.x), gate_words(model, t.left.y), gate_words(model, t.right.x),
        gate_words(model, t.right.y), gate_words(model, t.below.x), gate_words(model, t.below.y),
        gate_words(model, t.root));
    let own = near_level(2u);
    for (var i = 0u; i < trees_in_a_row(); i++) {
        let one = tree + i;
        let channel = one % shape.channels;
        for (var k = 0u; k < rolled_unless_split(quarters()); k++) {
            let j = first_quarter + k;
            let b = stored_words(patch_at(channel, CENTRE), base, j);
            let a0 = stored_words(patch_at(channel, t.a[0]), base, j);
            let a1 = stored_words(patch_at(channel, t.a[1]), base, j);
            let a2 = stored_words(patch_at(channel, t.a[2]), base, j);
            let a3 = stored_words(patch_at(channel, t.a[3]), base, j);
            let left = gate(f[4], gate(f[0], a0, b), gate(f[1], a1, b));
            let right = gate(f[5], gate(f[2], a2, b), gate(f[3], a3, b));
            put_words(shape.patch_nodes + one, base, own, j, gate(f[6], left, right));
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
    let each = groups_per_tile();
    choose_quarter(workgroup.x);
    let base = first_place(workgroup.x / each * shape.nodes, lane);
    let tiles = shape.chunks / LANES;
    for (var group = at.first * each + workgroup.x; group < at.end * each; group += workgroups.x) {
        let task = group / each;
        let model = task / tiles;
        let cell = (task % tiles * LANES + lane) * CELLS_PER_CHUNK;
        for (var item = worker(thread); item < shape.patch_nodes * quarters(); item += workers()) {
            let j = first_quarter + item % quarters();
            store_words(item / quarters(), base, j, patch_words(model, cell + j * 4u, item / quarters()));
        }
        chunk_barrier();
        if TREES == 1u {
            for (var tree = worker(thread) * trees_in_a_row(); tree < trees(); tree += workers() * trees_in_a_row()) {
                evaluate_trees(model, tree, base);
            }
            level_barrier();
        }
        for (var l = shape.tree_levels; l < shape.levels; l++) {
            let level = shape.level_table[l];
            let before = level_before(l);
            let own = near_level(l);
            for (var i = worker(thread); i < level.y; i += workers()) {
                let instance = level.x + i;
                let f = gate_words(model, gate_of(level, instance));
                let from_nodes = wire(model, instance);
                for (var k = 0u; k < rolled_unless_split(quarters()); k++) {
                    let j = first_quarter + k;
                    let a = node_words(from_nodes.x, base, before, j);
                    put_words(node_of(instance), base, own, j, gate(f, a, node_words(from_nodes.y, base, before, j)));
                }
            }
            level_barrier();
        }
        let last = near_level(shape.levels - 1u);
        let cells = 4u * quarters();
        for (var item = worker(thread); item < shape.channels * cells; item += workers()) {
            let channel = item / cells;
            let i = first_quarter * 4u + item % cells;
            var value = node_words(shape.nodes - shape.channels + channel, base, last, i / 4u)[i % 4u];
            if keeps_old_state(model, at.step, cell + i) {
                value = words[state_index(model, cell + i, channel)];
            }
            next_words[state_index(model, cell + i, channel)] = value;
        }
        if SPLIT == 0u || group + workgroups.x < at.end * each { chunk_barrier(); }
    }
}
