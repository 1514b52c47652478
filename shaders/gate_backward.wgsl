// One CA step backward, all levels fused: the adjoint of a state -> that of the state before.
//
//     d_a = d*(ca + cab*b)    d_b = d*(cb + cab*a)    moments += (d, d*a, d*b, d*a*b)
//
// The adjoint of a state is gathered from the patch adjoints that the dispatches before left: no
// scatter, no atomics. A partial sum belongs to one block of chunks, which one workgroup visits in
// order, quarter by quarter of a chunk, so that no sum depends on WG, LANES or the number of workgroups.
// Twin: difflogic/reference/kernels/gate_backward.py
// Dispatch: x = at most models * blocks / LANES workgroups, which loop.
// Shapes, per model: edges [instances + patch nodes]; coefficients [gates]; masks [T, H*W]; kept [chunks / LANES,
//     nodes, LANES], numbers or codes and then their ranges, or, where nodes are computed again, the state
//     [chunks, C, 16] that they follow from; d_next, d_rows [chunks, 3*C, halo], or without perception [chunks, outputs,
//     16] and [chunks, C, 16]; values [workgroups, slots (+ nodes),
//     LANES] of slots and such nodes, scratch; partials [blocks, instances].
#import common/shape.wgsl

// Of an instance, its two inputs a and b; of a patch node, which reads nothing, only the fanout.
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
@group(0) @binding(8) var<storage, read_write> d_rows: array<f32>;
@group(0) @binding(9) var<storage, read_write> partials: array<vec4<f32>>;

#import common/d_states.wgsl
#import common/step.wgsl
#import common/half.wgsl

fn edge_index(model: u32, place: u32) -> u32 {
    return model * (shape.instances + shape.patch_nodes) + place;
}

// In the levels of trees an instance is in its own place.
fn wire(model: u32, place: u32) -> vec2<u32> {
    return edges[edge_index(model, place)].wires;
}

fn instance_at(model: u32, place: u32) -> u32 {
    return edges[edge_index(model, place)].instance;
}

// Where nodes are computed again.
fn state_value(index: u32) -> f32 {
    return bitcast<f32>(kept[index / CELLS_PER_CHUNK][index / 4u % 4u][index % 4u]);
}

fn input(node: u32, quarter: u32) -> vec4<f32> {
    if KEEP == 0u { return values[node][quarter]; }
    if HALF == 0u { return bitcast<vec4<f32>>(kept[node][quarter]); }
    let codes = kept[node / 2u][node % 2u * 2u + quarter / 2u];
    let range = code_words() + node;
    return decode(select(codes.xy, codes.zw, quarter % 2u == 1u), kept[range / 16u][range / 4u % 4u][range % 4u]);
}

#import common/slots.wgsl
#import common/moments.wgsl

#import common/d_trees.wgsl
#import common/d_gates.wgsl

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let lane = thread % LANES;
    let slots = first_place(workgroup.x * (shape.slots + select(shape.nodes, 0u, KEEP == 1u)), lane);
    // Scratch of a workgroup: the slots, and behind them the nodes where they are computed again. No two workgroups
    // share it, and a workgroup that goes on to its next tile overwrites it.
    let outputs = slots + (shape.slots - shape.outputs) * LANES;  // slots of the last level
    let tiles = shape.blocks / LANES;
    for (var task = at.first + workgroup.x; task < at.end; task += workgroups.x) {
        let model = task / tiles;
        let block = task % tiles * LANES + lane;
        let sums = (model * shape.blocks + block) * shape.instances;
        // The chunks of a block in order, into the same partial sums; where a dispatch does only some of them, the next
        // goes on.
        for (var part = at.first_part; part < at.end_part; part++) {
            let chunk = block * shape.chunks_per_block + part;
            let forward = first_place((model * shape.chunks + chunk) / LANES * shape.nodes, chunk % LANES);
            let base = select(slots + shape.slots * LANES, forward, KEEP == 1u);
            let cell = chunk * CELLS_PER_CHUNK;
            // The first chunk of the first step backward assigns, all others add: no buffer has to be cleared.
            let begins = part == 0u && at.step + 1u == shape.steps;
            if KEEP == 0u {
                evaluate(model, chunk, base, thread);
                if HALF == 1u { halve(chunk, base, thread); }
            }
            for (var item = worker(thread); item < shape.outputs * 4u; item += workers()) {
                var d = vec4<f32>();
                if PERCEIVES == 1u {
                    d = d_states(model, cell + item % 4u * 4u, item / 4u, false);
                } else {
                    d = d_outputs(model, chunk, item / 4u, item % 4u);
                }
                values[outputs + item / 4u * LANES][item % 4u] = d;
            }
            chunk_barrier();
            // Backward a level's slots are complete when the levels behind it are done.
            for (var l = shape.levels; l > shape.tree_levels; l--) {
                level_adjoints(model, shape.level_table[l - 1u], base, slots, sums, begins, thread);
                chunk_barrier();
            }
            if TREES == 1u {
                all_tree_adjoints(model, base, slots, sums, begins, thread);
                chunk_barrier();
            }
            // Where many share a chunk, three rows to a channel are too few to keep them busy: they sum the slots of
            // nine patch nodes first, a quarter each.
            if PERCEIVES == 1u && quarters() == 1u {
                sum_patch_slots(model, slots, thread);
                chunk_barrier();
            }
            if PERCEIVES == 1u {
                for (var row = worker(thread); row < 3u * shape.channels; row += workers()) {
                    send_row(model, cell, row, slots);
                }
            } else {
                send_cells(model, chunk, slots, thread);
            }
            chunk_barrier();
        }
    }
}
