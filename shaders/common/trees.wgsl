// Perception kernels begin with trees: four gates that each read the cell itself and a neighbour, two gates that read
// these in pairs, and the root. An invocation computes a tree for one channel of a chunk; only the root is stored.
// Wires of gates above the leaves contain gates, not nodes: see difflogic/gpu/wiring.py
// Needs `shape` and the function `wire(model, place)`; in the levels of trees, the place of an instance is its number.

// 1: perception begins with trees, which are computed before all other levels.
override TREES: u32 = 0u;

// Gates of a tree, and cells of the patch that its leaves read, which are equal for all channels.
struct Tree {
    root: u32,
    below: vec2<u32>,  // the gates that the root reads
    left: vec2<u32>,   // those that they read: the leaves
    right: vec2<u32>,
    a: array<u32, 4>,  // what the leaves read besides the cell itself
}

fn trees() -> u32 {
    return shape.level_table[2].y;
}

// Instance for a channel of a gate in a level of the trees.
fn in_tree(level: u32, id: u32, channel: u32) -> u32 {
    let row = shape.level_table[level];
    return row.x + (id - row.z) * row.w + channel;
}

// Trees are numbered by root, and for each root by channel. An invocation with a separate chunk processes all trees of
// a root in turn, and loads their common data once.
fn trees_in_a_row() -> u32 {
    return select(1u, shape.channels, workers() == 1u);
}

// First tree of an invocation, or the last tree if it has none.
fn first_tree(thread: u32) -> u32 {
    return min(worker(thread) * trees_in_a_row(), trees() - 1u);
}

fn tree_at(model: u32, tree: u32) -> Tree {
    let root = shape.level_table[2].z + tree / shape.channels;
    let below = wire(model, in_tree(2u, root, 0u));
    let left = wire(model, in_tree(1u, below.x, 0u));
    let right = wire(model, in_tree(1u, below.y, 0u));
    let a = array<u32, 4>(
        wire(model, in_tree(0u, left.x, 0u)).x, wire(model, in_tree(0u, left.y, 0u)).x,
        wire(model, in_tree(0u, right.x, 0u)).x, wire(model, in_tree(0u, right.y, 0u)).x);
    return Tree(root, below, left, right, a);
}

// Node of a channel in a cell of the patch.
fn patch_at(channel: u32, f: u32) -> u32 {
    return channel * PATCH + f;
}

// Node of an instance; gates below the root of a tree have none.
fn node_of(instance: u32) -> u32 {
    return shape.patch_nodes + instance - shape.inner;
}
