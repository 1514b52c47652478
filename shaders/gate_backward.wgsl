// One CA step backward, all levels fused: the adjoint of states[step + 1] -> that of states[step].
//
//     d_a = d*(ca + cab*b)    d_b = d*(cb + cab*a)    moments += (d, d*a, d*b, d*a*b)
//
// The adjoint of a state is gathered from the patch adjoints that the previous dispatch left: no
// scatter, no atomics. A partial sum belongs to one block of chunks, which one invocation visits in
// order, so that no sum depends on WG, LANES or the number of workgroups.
// Twin: difflogic/reference/gate_backward.py
// Dispatch: x = at most models * blocks / LANES workgroups, which loop.
// Shapes, per model: edges [nodes], instances first, then patch nodes; coefficients [gates]; masks [T, H*W];
//     states [T+1, chunks, C, 16]; nodes as common/step.wgsl says; slots [workgroups, LANES, slots];
//     d_patches [2, chunks, 9*C, 16]; partials [blocks, instances].
#import common/shape.wgsl

struct Edge {
    wire: vec2<u32>,    // the nodes that inputs a and b read
    slots: vec2<u32>,   // where their adjoints go
    fanout: vec2<u32>,  // the slots [start, end) whose sum is this node's own adjoint
    unused: vec2<u32>,
}

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<uniform> at: At;
@group(0) @binding(2) var<storage, read> edges: array<Edge>;
@group(0) @binding(3) var<storage, read> coefficients: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> masks: array<f32>;
@group(0) @binding(5) var<storage, read> states: array<f32>;
@group(0) @binding(6) var<storage, read_write> nodes: array<Chunk>;
@group(0) @binding(7) var<storage, read_write> slots: array<Chunk>;
@group(0) @binding(8) var<storage, read_write> d_patches: array<f32>;
@group(0) @binding(9) var<storage, read_write> partials: array<vec4<f32>>;

#import common/d_states.wgsl
#import common/step.wgsl

fn wire(model: u32, instance: u32) -> vec2<u32> {
    return edges[model * shape.nodes + instance].wire;
}

fn sum_slots(fanout: vec2<u32>, scratch: u32) -> Chunk {
    var d0 = vec4<f32>();
    var d1 = vec4<f32>();
    var d2 = vec4<f32>();
    var d3 = vec4<f32>();
    for (var slot = scratch + fanout.x; slot < scratch + fanout.y; slot++) {
        d0 += slots[slot][0];
        d1 += slots[slot][1];
        d2 += slots[slot][2];
        d3 += slots[slot][3];
    }
    return Chunk(d0, d1, d2, d3);
}

fn total(x: vec4<f32>) -> f32 {
    return (x.x + x.y) + (x.z + x.w);
}

// Four of the chunk's cells: sends the adjoint on to both inputs, returns the moments.
fn gate_adjoint(d: vec4<f32>, c: vec4<f32>, inputs: vec2<u32>, to: vec2<u32>, j: u32) -> vec4<f32> {
    let a = nodes[inputs.x][j];
    let b = nodes[inputs.y][j];
    slots[to.x][j] = d * (c.y + c.w * b);
    slots[to.y][j] = d * (c.z + c.w * a);
    let d_a = d * a;
    return vec4<f32>(total(d), total(d_a), total(d * b), total(d_a * b));
}

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let lane = thread % LANES;
    let place = workgroup.x * LANES + lane;
    let scratch = place * shape.slots;
    let outputs = scratch + shape.slots - shape.channels;  // slots of the last level
    let tiles = shape.blocks / LANES;
    for (var task = workgroup.x; task < shape.models * tiles; task += workgroups.x) {
        let model = task / tiles;
        let block = task % tiles * LANES + lane;
        let sums = (model * shape.blocks + block) * shape.instances;
        for (var part = 0u; part < shape.chunks_per_block; part++) {
            let chunk = block * shape.chunks_per_block + part;
            let base = nodes_base(model, chunk, place);
            let cell = chunk * CELLS_PER_CHUNK;
            if KEEP == 0u { evaluate(model, chunk, base, thread); }
            for (var item = worker(thread); item < shape.channels * 4u; item += workers()) {
                slots[outputs + item / 4u][item % 4u] = d_states(model, cell + item % 4u * 4u, item / 4u, false);
            }
            chunk_barrier();
            for (var l = shape.levels; l > 0u; l--) {
                let level = shape.level_table[l - 1u];
                for (var i = worker(thread); i < level.y; i += workers()) {
                    let instance = level.x + i;
                    let edge = edges[model * shape.nodes + instance];
                    let c = coefficients[model * shape.gates + level.z + i / level.w];
                    let d = sum_slots(edge.fanout, scratch);
                    let inputs = edge.wire + base;
                    let to = edge.slots + scratch;
                    let low = gate_adjoint(d[0], c, inputs, to, 0u) + gate_adjoint(d[1], c, inputs, to, 1u);
                    let high = gate_adjoint(d[2], c, inputs, to, 2u) + gate_adjoint(d[3], c, inputs, to, 3u);
                    if part == 0u && at.step + 1u == shape.steps {  // the first to arrive
                        partials[sums + instance] = low + high;
                    } else {
                        partials[sums + instance] += low + high;
                    }
                }
                chunk_barrier();
            }
            for (var node = worker(thread); node < shape.patch_nodes; node += workers()) {
                var d = sum_slots(edges[model * shape.nodes + shape.instances + node].fanout, scratch);
                if shape.asynchronous == 1u && node % PATCH == CENTRE {
                    for (var j = 0u; j < 4u; j++) { d[j] += d_states(model, cell + 4u * j, node / PATCH, true); }
                }
                let to = d_patch_index(model, at.step, cell, node);
                for (var i = 0u; i < CELLS_PER_CHUNK; i++) { d_patches[to + i] = d[i / 4u][i % 4u]; }
            }
            chunk_barrier();
        }
    }
}
