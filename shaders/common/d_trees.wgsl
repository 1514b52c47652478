// Backward pass of trees: recompute their values from the patch, and pass the roots' adjoints on to the patch.
// Needs `edges`, `values`, and the functions `input`, `put_slot`, `sum_readers` and `moments`.

// Gates are numbered from the leaves: 0 to 3, 4 and 5, 6; gate 4 reads 0 and 1, gate 5 reads 2 and 3.

// Backward pass of a channel's tree. Adjoints stay in registers: four are stored for the neighbours' patch nodes, and
// one sum for the cell itself, always in the order (d0 + d1) + (d2 + d3).
fn tree_adjoints(
    model: u32, t: Tree, c: array<Four, 7>, channel: u32, base: u32, slots: u32, sums: u32, begins: bool
) {
    let centre = patch_at(channel, CENTRE);
    let from0 = patch_at(channel, t.a[0]);
    let from1 = patch_at(channel, t.a[1]);
    let from2 = patch_at(channel, t.a[2]);
    let from3 = patch_at(channel, t.a[3]);
    let i = tree_places(t, channel);
    let to0 = edges[edge_index(model, i[0])].slots;
    let to1 = edges[edge_index(model, i[1])].slots.x;
    let to2 = edges[edge_index(model, i[2])].slots.x;
    let to3 = edges[edge_index(model, i[3])].slots.x;
    let fanout = edges[edge_index(model, i[6])].fanout;
    for (var k = 0u; k < rolled_unless_split(quarters()); k++) {
        let j = first_quarter + k;
        var sum = array<vec4<f32>, 7>();
        let b = input(centre, base, j);
        let a0 = input(from0, base, j);
        let a1 = input(from1, base, j);
        let a2 = input(from2, base, j);
        let a3 = input(from3, base, j);
        let v0 = gate(c[0], a0, b);
        let v1 = gate(c[1], a1, b);
        let v2 = gate(c[2], a2, b);
        let v3 = gate(c[3], a3, b);
        let v4 = gate(c[4], v0, v1);
        let v5 = gate(c[5], v2, v3);

        let d6 = sum_readers(fanout, slots, j);
        sum[6] = moments(d6, v4, v5);

        let d4 = d6 * (c[6].y + c[6].w * v5);
        sum[4] = moments(d4, v0, v1);
        let d0 = d4 * (c[4].y + c[4].w * v1);
        sum[0] = moments(d0, a0, b);
        put_slot(to0.x, slots, j, d0 * (c[0].y + c[0].w * b));
        let d1 = d4 * (c[4].z + c[4].w * v0);
        sum[1] = moments(d1, a1, b);
        put_slot(to1, slots, j, d1 * (c[1].y + c[1].w * b));
        let left = d0 * (c[0].z + c[0].w * a0) + d1 * (c[1].z + c[1].w * a1);

        let d5 = d6 * (c[6].z + c[6].w * v4);
        sum[5] = moments(d5, v2, v3);
        let d2 = d5 * (c[5].y + c[5].w * v3);
        sum[2] = moments(d2, a2, b);
        put_slot(to2, slots, j, d2 * (c[2].y + c[2].w * b));
        let d3 = d5 * (c[5].z + c[5].w * v2);
        sum[3] = moments(d3, a3, b);
        put_slot(to3, slots, j, d3 * (c[3].y + c[3].w * b));
        let right = d2 * (c[2].z + c[2].w * a2) + d3 * (c[3].z + c[3].w * a3);
        put_slot(to0.y, slots, j, left + right);

        // All loads precede the first store, so that a GPU waits only once.
        let to = sums + k * shape.instances;
        var before = array<vec4<f32>, 7>();
        for (var g = 0u; g < rolled_unless_split(7u); g++) { before[g] = partials[to + i[g]]; }
        for (var g = 0u; g < rolled_unless_split(7u); g++) {
            partials[to + i[g]] = select(before[g] + sum[g], sum[g], begins);
        }
    }
}

// Instances of a tree's gates, in order.
fn tree_places(t: Tree, channel: u32) -> array<u32, 7> {
    return array<u32, 7>(
        in_tree(0u, t.left.x, channel), in_tree(0u, t.left.y, channel), in_tree(0u, t.right.x, channel),
        in_tree(0u, t.right.y, channel), in_tree(1u, t.below.x, channel), in_tree(1u, t.below.y, channel),
        in_tree(2u, t.root, channel));
}

// `first`: under SPLIT, the invocation's first tree, which is known long before its root has an adjoint.
fn all_tree_adjoints(model: u32, first: Tree, base: u32, slots: u32, sums: u32, begins: bool, thread: u32) {
    let each = trees_in_a_row();
    var t = first;
    for (var tree = worker(thread) * each; tree < trees(); tree += workers() * each) {
        if SPLIT == 0u || tree >= workers() * each { t = tree_at(model, tree); }
        let c = tree_forms(model, t);
        for (var i = 0u; i < each; i++) {
            let one = tree + i;
            tree_adjoints(model, t, c, one % shape.channels, base, slots, sums, begins);
        }
    }
}
