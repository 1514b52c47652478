// Store and load the values of nodes and slots. Needs `shape`, `values`, common/tile.wgsl.

// Under SPLIT: the patch, followed by two regions that levels use alternately. No branch distinguishes them, since a
// wire is an index in this array.
var<workgroup> near: array<Four, NEAR>;

// Index in `near` of a place in a quarter; the places of each quarter are consecutive.
fn near_at(place: u32, quarter: u32) -> u32 {
    return (quarter - first_quarter) * (NEAR / QUARTERS) + place;
}

// Index of a level's first node.
fn near_level(l: u32) -> u32 {
    return shape.patch_nodes + select(0u, shape.near_odd, l % 2u == 1u);
}

fn patch_node(node: u32, base: u32, quarter: u32) -> Four {
    if SPLIT == 1u { return near[near_at(node, quarter)]; }
    return stored(node, shape.nodes, base, quarter);
}

// Value of a node of the last level, whose nodes are the new state.
fn output_node(output: u32, base: u32, quarter: u32) -> Four {
    if SPLIT == 1u { return near[near_at(near_level(shape.levels - 1u) + output, quarter)]; }
    return stored(shape.nodes - shape.outputs + output, shape.nodes, base, quarter);
}

// Values of an item in storage, of `count` items per chunk: of a node or, in the backward pass, of a slot.
fn stored(item: u32, count: u32, base: u32, quarter: u32) -> Four {
    let place = place_of(item, count, base, quarter);
    return values[place.chunk][place.four];
}

fn store(item: u32, count: u32, base: u32, quarter: u32, value: Four) {
    let place = place_of(item, count, base, quarter);
    values[place.chunk][place.four] = value;
}

// `place` is an index in `near`.
fn put_node(node: u32, place: u32, base: u32, quarter: u32, value: Four) {
    if SPLIT == 1u { near[near_at(place, quarter)] = value; }
    if SPLIT == 0u || writes_nodes() { store(node, shape.nodes, base, quarter, value); }
}
