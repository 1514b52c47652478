// Trees backward: their values are computed again from the patch, and the roots' adjoints go down to it.
// Needs `edges`, `values`, and the functions `input`, `moments` and `add_moments`.

// Gates are numbered from the leaves: 0 to 3, 4 and 5, 6; gate 4 reads 0 and 1, gate 5 reads 2 and 3.
fn tree_adjoints(model: u32, tree: u32, base: u32, slots: u32, sums: u32, first: bool) {
    let t = tree_at(model, tree);
    let c = tree_coefficients(model, t);
    for (var one = tree; one < tree + trees_in_a_row(); one++) {
        let channel = one % shape.channels;
        let centre = patch_at(channel, CENTRE, base);
        let from0 = patch_at(channel, t.a[0], base);
        let from1 = patch_at(channel, t.a[1], base);
        let from2 = patch_at(channel, t.a[2], base);
        let from3 = patch_at(channel, t.a[3], base);
        let i0 = in_tree(0u, t.left.x, channel);
        let i1 = in_tree(0u, t.left.y, channel);
        let i2 = in_tree(0u, t.right.x, channel);
        let i3 = in_tree(0u, t.right.y, channel);
        let i6 = in_tree(2u, t.root, channel);
        let to0 = slots_of(edge_index(model, i0)) * LANES + slots;
        let to1 = edges[edge_index(model, i1)].often.y * LANES + slots;
        let to2 = edges[edge_index(model, i2)].often.y * LANES + slots;
        let to3 = edges[edge_index(model, i3)].often.y * LANES + slots;
        let fanout = fanout_of(edge_index(model, i6));
        var sum = array<vec4<f32>, 7>();  // said, for in a loop wgpu does not set what is only declared to 0
        for (var j = 0u; j < 4u; j++) {
            let b = input(centre, j);
            let a0 = input(from0, j);
            let a1 = input(from1, j);
            let a2 = input(from2, j);
            let a3 = input(from3, j);
            let v0 = gate(c[0], a0, b);
            let v1 = gate(c[1], a1, b);
            let v2 = gate(c[2], a2, b);
            let v3 = gate(c[3], a3, b);
            let v4 = gate(c[4], v0, v1);
            let v5 = gate(c[5], v2, v3);

            let d6 = sum_quarter(fanout, slots, j);
            let d4 = d6 * (c[6].y + c[6].w * v5);
            let d5 = d6 * (c[6].z + c[6].w * v4);
            let d0 = d4 * (c[4].y + c[4].w * v1);
            let d1 = d4 * (c[4].z + c[4].w * v0);
            let d2 = d5 * (c[5].y + c[5].w * v3);
            let d3 = d5 * (c[5].z + c[5].w * v2);
            values[to0.x][j] = d0 * (c[0].y + c[0].w * b);
            values[to1][j] = d1 * (c[1].y + c[1].w * b);
            values[to2][j] = d2 * (c[2].y + c[2].w * b);
            values[to3][j] = d3 * (c[3].y + c[3].w * b);
            let left = d0 * (c[0].z + c[0].w * a0) + d1 * (c[1].z + c[1].w * a1);
            let right = d2 * (c[2].z + c[2].w * a2) + d3 * (c[3].z + c[3].w * a3);
            values[to0.y][j] = left + right;

            sum[0] += moments(d0, a0, b);
            sum[1] += moments(d1, a1, b);
            sum[2] += moments(d2, a2, b);
            sum[3] += moments(d3, a3, b);
            sum[4] += moments(d4, v0, v1);
            sum[5] += moments(d5, v2, v3);
            sum[6] += moments(d6, v4, v5);
        }
        add_moments(sums + i0, sum[0], first);
        add_moments(sums + i1, sum[1], first);
        add_moments(sums + i2, sum[2], first);
        add_moments(sums + i3, sum[3], first);
        add_moments(sums + in_tree(1u, t.below.x, channel), sum[4], first);
        add_moments(sums + in_tree(1u, t.below.y, channel), sum[5], first);
        add_moments(sums + i6, sum[6], first);
    }
}
