// Values of the nodes in the forward pass, which are stored or have been recomputed. Needs `shape`, `kept`, `values`.

fn input(node: u32, base: u32, quarter: u32) -> vec4<f32> {
    let place = place_of(node, shape.nodes, base, quarter);
    if KEEP == 0u { return values[place.chunk][place.four]; }
    return bitcast<vec4<f32>>(kept[place.chunk][place.four]);
}

fn inputs(node: u32, base: u32) -> Chunk {
    return Chunk(input(node, base, 0u), input(node, base, 1u), input(node, base, 2u), input(node, base, 3u));
}

// Index in `near` of a node that a level reads while a step is recomputed under SPLIT.
fn near_input(level: u32, node: u32) -> u32 {
    if node < shape.patch_nodes { return node; }
    return near_level(level - 1u) + node - node_of(shape.level_table[level - 1u].x);
}
