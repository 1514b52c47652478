// The nodes of the step forward, as they were kept or computed again. Needs `shape`, `kept`, `values`, common/half.wgsl.

fn input(node: u32, base: u32, quarter: u32) -> vec4<f32> {
    let place = place_of(node, shape.nodes, base, quarter);
    if KEEP == 0u { return values[place.chunk][place.four]; }
    if HALF == 0u { return bitcast<vec4<f32>>(kept[place.chunk][place.four]); }
    let at_half = place.chunk;
    let codes = kept[at_half / 2u][at_half % 2u * 2u + quarter / 2u];
    let range = code_words() + at_half;
    return decode(select(codes.xy, codes.zw, quarter % 2u == 1u), kept[range / 16u][range / 4u % 4u][range % 4u]);
}

fn inputs(node: u32, base: u32) -> Chunk {
    return Chunk(input(node, base, 0u), input(node, base, 1u), input(node, base, 2u), input(node, base, 3u));
}

// Where a node that a level reads lies in `near`, while a step is computed again under SPLIT.
fn near_input(level: u32, node: u32) -> u32 {
    if node < shape.patch_nodes { return node; }
    return near_level(level - 1u) + node - node_of(shape.level_table[level - 1u].x);
}
