// Forward pass of one CA step, soft or hard, with the entry point `main`. Needs `at`, `wires`, and
// `put_next(index, value)`.
#import common/candidates.wgsl
#import common/step.wgsl

fn candidate(model: u32, place: u32, i: u32) -> vec2<u32> {
    return wires[(model * shape.instances + place) * CANDIDATES + i];
}

// In the forward pass, the place of an instance is its number. Under SPLIT, `wires` are indices in `near`.
fn wire(model: u32, place: u32) -> vec2<u32> { return candidate(model, place, 0u); }
fn instance_at(model: u32, place: u32) -> u32 { return place; }
fn near_input(level: u32, node: u32) -> u32 { return node; }

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let lane = thread % LANES;
    let tiles = shape.chunks / LANES;
    let each = groups_per_tile();
    choose_quarter(workgroup.x);
    for (var group = at.first * each + workgroup.x; group < at.end * each; group += workgroups.x) {
        let task = group / each;
        let model = task / tiles;
        let chunk = task % tiles * LANES + lane;
        // Stored nodes have a place for every chunk; otherwise nodes are in the workgroup's scratch memory.
        let base = first_place(select(workgroup.x / each, task, writes_nodes()) * shape.nodes, lane);
        let cell = chunk * CELLS_PER_CHUNK;
        evaluate(model, chunk, base, thread);
        let cells = 4u * quarters();
        for (var item = worker(thread); item < shape.outputs * cells; item += workers()) {
            let channel = item / cells;
            let i = first_quarter * 4u + item % cells;
            var value = output_node(channel, base, i / 4u)[i % 4u];
            if keeps_old_state(model, at.step, cell + i) {
                value = state_value(state_index(model, cell + i, channel));
            }
            put_next(((model * shape.chunks + chunk) * shape.outputs + channel) * CELLS_PER_CHUNK + i, value);
        }
        // Barrier before scratch is overwritten. A GPU usually has a workgroup for each tile.
        if SPLIT == 0u || group + workgroups.x < at.end * each { step_barrier(); }
    }
}
