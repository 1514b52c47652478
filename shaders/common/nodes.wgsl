// Where the values of nodes are put, and found. Needs `shape`, `values`, `writes_nodes`, common/tile.wgsl.

// What goes from level to level.
var<workgroup> near: array<Four, NEAR>;

fn node_value(node: u32, base: u32, before: NearLevel, quarter: u32) -> Four {
    if SPLIT == 1u && node >= before.first { return near[before.at + node - before.first]; }
    return stored_node(node, base, quarter);
}

fn stored_node(node: u32, base: u32, quarter: u32) -> Four {
    let place = place_of(node, shape.nodes, base, quarter);
    return values[place.chunk][place.four];
}

fn store_node(node: u32, base: u32, quarter: u32, value: Four) {
    let place = place_of(node, shape.nodes, base, quarter);
    values[place.chunk][place.four] = value;
}

fn put_node(node: u32, base: u32, own: NearLevel, quarter: u32, value: Four) {
    if SPLIT == 1u { near[own.at + node - own.first] = value; }
    if SPLIT == 0u || writes_nodes() { store_node(node, base, quarter, value); }
}
