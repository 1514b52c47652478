// Backward pass of one CA step, all levels fused: adjoint of a state -> patch adjoints of the previous state.
//
//     d_a = d*(ca + cab*b)    d_b = d*(cb + cab*a)    moments += (d, d*a, d*b, d*a*b)
// The adjoint of a state is gathered from the patch adjoints of the previous dispatch, without scatter or atomics. A
// partial sum belongs to a quarter of the chunks of a block, which one workgroup adds in order: common/moments.wgsl.
// Reference: difflogic/reference/kernels/gate_backward.py
// Dispatch: x = at most models * blocks / LANES workgroups, which loop; under SPLIT two or four times as many.
// Shapes, per model: edges [instances + patch nodes]; coefficients [gates]; masks [T, H*W];
//     kept [chunks / LANES, nodes, LANES], or the state [chunks, C, 16] before the step if nodes are recomputed;
//     d_next [chunks, C * adjoints, 16], without perception [chunks, outputs, 16];
//     d_patches [chunks of a window, patch nodes, 16]; values [workgroups, slots (+ recomputed nodes), LANES], scratch;
//     partials [blocks, 4, instances].
//     With candidates, an edge has one more row for every two of them, records of coefficients and partials are longer
//     (common/candidates.wgsl), and slot = share * d_a.
#import common/shape.wgsl
#import common/candidates.wgsl

// Inputs a and b of an instance, and its fanout; a patch node, which has no inputs, only has a fanout.
struct Edge {
    wires: vec2<u32>,   // the nodes that a and b read; in a tree above its leaves, the gates
    slots: vec2<u32>,   // where the adjoints of a and b go
    fanout: vec2<u32>,  // the slots [begin, end) whose sum is its own adjoint
    gate: u32,
    instance: u32,
}

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<uniform> at: StepRange;
@group(0) @binding(2) var<storage, read> edges: array<Edge>;  // by place: of instances, then of patch nodes
@group(0) @binding(3) var<storage, read> coefficients: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> masks: array<f32>;
@group(0) @binding(5) var<storage, read> kept: array<WordChunk>;
@group(0) @binding(6) var<storage, read> d_next: array<f32>;
@group(0) @binding(7) var<storage, read_write> values: array<Chunk>;
@group(0) @binding(8) var<storage, read_write> d_patches: array<vec4<f32>>;
@group(0) @binding(9) var<storage, read_write> partials: array<vec4<f32>>;

#import common/d_states.wgsl
#import common/soft.wgsl
#import common/step.wgsl

fn edge_index(model: u32, place: u32) -> u32 {
    return (model * (shape.instances + shape.patch_nodes) + place) * record();
}

// In the levels of trees, the place of an instance is its number.
fn wire(model: u32, place: u32) -> vec2<u32> { return edges[edge_index(model, place)].wires; }
fn instance_at(model: u32, place: u32) -> u32 { return edges[edge_index(model, place)].instance; }

// Value of the state before the step, if nodes are recomputed.
fn state_value(index: u32) -> f32 {
    return bitcast<f32>(kept[index / CELLS_PER_CHUNK][index / 4u % 4u][index % 4u]);
}

fn writes_nodes() -> bool { return true; }

#import common/slots.wgsl
#import common/moments.wgsl
#import common/d_trees.wgsl
#import common/d_gates.wgsl
#import common/d_candidates.wgsl

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let lane = thread % LANES;
    let each = groups_per_tile();
    choose_quarter(workgroup.x);
    let slots = first_place(workgroup.x / each * (shape.slots + select(shape.nodes, 0u, KEEP == 1u)), lane);
    // Scratch of a workgroup: the slots, followed by the nodes if these are recomputed. No two workgroups share it,
    // except for quarters, and a workgroup overwrites it when it proceeds to its next tile.
    let outputs = shape.slots - shape.outputs;  // the last level's, but under SPLIT
    let tiles = shape.blocks / LANES;
    for (var group = at.first * each + workgroup.x; group < at.end * each; group += workgroups.x) {
        let task = group / each;
        let model = task / tiles;
        let block = task % tiles * LANES + lane;
        let sums = first_partial(model, block, first_quarter);
        // The chunks of a block are added in order to the same partial sums; if a dispatch adds only some of them, the
        // next dispatch continues.
        for (var part = at.first_part; part < at.end_part; part++) {
            let chunk = block * shape.chunks_per_block + part;
            let forward = first_place((model * shape.chunks + chunk) / LANES * shape.nodes, chunk % LANES);
            let base = select(slots + shape.slots * LANES, forward, KEEP == 1u);
            // The first chunk of the first backward step assigns, all others add, so that no buffer must be cleared.
            let begins = at.step == shape.steps - 1u && part == 0u;
            if KEEP == 0u {
                evaluate(model, chunk, base, thread);
                // Nodes were written by other invocations than those that read them.
                if SPLIT == 1u { storageBarrier(); }
            }
            var tree = Tree();
            if TREES == 1u && SPLIT == 1u { tree = tree_at(model, first_tree(thread)); }
            if SPLIT == 1u {
                gather_outputs(model, chunk, thread);
                send_split(model, base, slots, sums, begins, thread);
            } else {
                for (var item = worker(thread); item < shape.outputs * 4u; item += workers()) {
                    put_slot(outputs + item / 4u, slots, item % 4u, d_output(model, chunk, item / 4u, item % 4u));
                }
                chunk_barrier();
                // In the backward pass, a level's slots are complete when all later levels are done.
                for (var l = shape.levels; l > shape.tree_levels; l--) {
                    let level = shape.level_table[l - 1u];
                    if CANDIDATES > 1u {
                        send_candidates(model, level, base, slots, sums, begins, thread);
                    } else {
                        send_chunks(model, level, base, slots, sums, begins, thread);
                    }
                    chunk_barrier();
                }
            }
            if TREES == 1u { all_tree_adjoints(model, tree, base, slots, sums, begins, thread); }
            if SPLIT == 1u { workgroupBarrier(); }
            chunk_barrier();
            send_patches(model, chunk, slots, thread);
            // Barrier before scratch is overwritten. A GPU usually has a workgroup for each tile.
            if SPLIT == 0u || part + 1u < at.end_part || group + workgroups.x < at.end * each { step_barrier(); }
        }
    }
}
