// Values of a chunk's nodes in one CA step, soft or hard. Type One is one cell's value; Four is four cells' values, or
// a gate's form (common/soft.wgsl, hard_forward.wgsl). References: difflogic/reference/kernels/gate_forward.py and
// hard_forward.py. Needs `shape`, `masks`, `values`, and the functions `gate(form, a, b)`, `form_of(model, gate)`,
// `wire(model, place)`, `instance_at(model, place)`, `near_input(level, node)` (index in `near`), `state_value(index)`,
// `mixed(model, gate, place, side, base, quarter)` (an input with candidates), and `writes_nodes()` (true if nodes are
// read after the step, and not only by the next level).
#import common/tile.wgsl
#import common/trees.wgsl
#import common/nodes.wgsl
#import common/levels.wgsl

// Fire masks are [models, T, H*W]: 0 for a cell that keeps its old state.
fn keeps_old_state(model: u32, step: u32, cell: u32) -> bool {
    if shape.asynchronous == 0u { return false; }
    return masks[(model * shape.steps + step) * shape.grid + cell % shape.grid] == 0.0;
}

// 1: a cell reads its patch. 0: it reads only itself, as in a feed-forward circuit; a channel is one patch node.
override PERCEIVES: u32 = 1u;

fn patch_value(model: u32, cell: u32, channel: u32, f: u32) -> One {
    if cell >= shape.cells { return One(); }
    if PERCEIVES == 0u { return state_value(state_index(model, cell, channel)); }
    let there = neighbour(cell, i32(f / 3u) - 1, i32(f % 3u) - 1);
    if there == OUTSIDE { return One(); }
    return state_value(state_index(model, there, channel));
}

fn patch_values(model: u32, cell: u32, patch_node: u32) -> Four {
    let channel = select(patch_node, patch_node / PATCH, PERCEIVES == 1u);
    let f = select(CENTRE, patch_node % PATCH, PERCEIVES == 1u);
    var patches = Four();
    for (var i = 0u; i < rolled_unless_split(4u); i++) { patches[i] = patch_value(model, cell + i, channel, f); }
    return patches;
}

fn tree_forms(model: u32, t: Tree) -> array<Four, 7> {
    return array<Four, 7>(
        form_of(model, t.left.x), form_of(model, t.left.y), form_of(model, t.right.x), form_of(model, t.right.y),
        form_of(model, t.below.x), form_of(model, t.below.y), form_of(model, t.root));
}

// Value of a root in four cells.
fn tree_value(t: Tree, channel: u32, f: array<Four, 7>, base: u32, quarter: u32) -> Four {
    let b = patch_node(patch_at(channel, CENTRE), base, quarter);
    let a0 = patch_node(patch_at(channel, t.a[0]), base, quarter);
    let a1 = patch_node(patch_at(channel, t.a[1]), base, quarter);
    let a2 = patch_node(patch_at(channel, t.a[2]), base, quarter);
    let a3 = patch_node(patch_at(channel, t.a[3]), base, quarter);
    let left = gate(f[4], gate(f[0], a0, b), gate(f[1], a1, b));
    let right = gate(f[5], gate(f[2], a2, b), gate(f[3], a3, b));
    return gate(f[6], left, right);
}

// Gate of a level: its form, the nodes that it reads, and its instance.
struct Gate { form: Four, inputs: vec2<u32>, instance: u32 }

// Past a level's last gate, the last gate is repeated.
fn gate_at(model: u32, level: vec4<u32>, i: u32) -> Gate {
    let place = level.x + min(i, level.y - 1u);
    let instance = instance_at(model, place);
    return Gate(form_of(model, gate_of(level, instance)), wire(model, place), instance);
}

// `first`, `forms`: under SPLIT, those of the invocation's first tree, loaded before the patch is available.
fn evaluate_trees(model: u32, base: u32, first: Tree, forms: array<Four, 7>, thread: u32) {
    let each = trees_in_a_row();
    var t = first;
    var f = forms;
    for (var tree = worker(thread) * each; tree < trees(); tree += workers() * each) {
        if SPLIT == 0u || tree >= workers() * each {
            t = tree_at(model, tree);
            f = tree_forms(model, t);
        }
        for (var i = 0u; i < each; i++) {
            let one = tree + i;
            for (var k = 0u; k < rolled_unless_split(quarters()); k++) {
                let j = first_quarter + k;
                let value = tree_value(t, one % shape.channels, f, base, j);
                put_node(shape.patch_nodes + one, near_level(2u) + one, base, j, value);
            }
        }
    }
    step_barrier();
}

// Barrier between two levels, which pass values on in workgroup memory under SPLIT.
fn step_barrier() {
    if SPLIT == 1u { workgroupBarrier(); } else { chunk_barrier(); }
}

fn evaluate(model: u32, chunk: u32, base: u32, thread: u32) {
    let cell = chunk * CELLS_PER_CHUNK;
    var tree = Tree();
    var forms = array<Four, 7>();
    if TREES == 1u && SPLIT == 1u {
        tree = tree_at(model, first_tree(thread));
        forms = tree_forms(model, tree);
    }
    for (var item = worker(thread); item < shape.patch_nodes * quarters(); item += workers()) {
        let j = first_quarter + item % quarters();
        let node = item / quarters();
        put_node(node, node, base, j, patch_values(model, cell + j * 4u, node));
    }
    step_barrier();
    if TREES == 1u { evaluate_trees(model, base, tree, forms, thread); }
    if SPLIT == 1u {
        evaluate_split(model, base, thread);
        return;
    }
    // A level reads only what earlier levels wrote, so that one barrier between two levels suffices, and none is needed
    // if each chunk has only one invocation.
    for (var l = shape.tree_levels; l < shape.levels; l++) {
        let level = shape.level_table[l];
        for (var i = worker(thread); i < level.y; i += workers()) {
            let g = gate_at(model, level, i);
            if CANDIDATES > 1u {
                let id = gate_of(level, g.instance);
                for (var j = 0u; j < rolled(4u); j++) {
                    let a = mixed(model, id, level.x + i, 0u, base, j);
                    put_node(node_of(g.instance), 0u, base, j, gate(g.form, a, mixed(model, id, level.x + i, 1u, base, j)));
                }
                continue;
            }
            let places = g.inputs * LANES + base;
            let node = base + node_of(g.instance) * LANES;
            for (var j = 0u; j < rolled(4u); j++) { values[node][j] = gate(g.form, values[places.x][j], values[places.y][j]); }
        }
        chunk_barrier();
    }
}
