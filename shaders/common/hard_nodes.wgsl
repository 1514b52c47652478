// As common/nodes.wgsl, words of 32 samples. Needs `shape`, `hard_nodes`, common/tile.wgsl.

// What goes from level to level.
var<workgroup> near: array<vec4<u32>, NEAR>;

fn node_words(node: u32, base: u32, before: NearLevel, quarter: u32) -> vec4<u32> {
    if SPLIT == 1u && node >= before.first { return near[before.at + node - before.first]; }
    return stored_words(node, base, quarter);
}

fn stored_words(node: u32, base: u32, quarter: u32) -> vec4<u32> {
    let place = place_of(node, shape.nodes, base, quarter);
    return hard_nodes[place.chunk][place.four];
}

fn store_words(node: u32, base: u32, quarter: u32, words: vec4<u32>) {
    let place = place_of(node, shape.nodes, base, quarter);
    hard_nodes[place.chunk][place.four] = words;
}

fn put_words(node: u32, base: u32, own: NearLevel, quarter: u32, words: vec4<u32>) {
    if SPLIT == 1u { near[own.at + node - own.first] = words; } else { store_words(node, base, quarter, words); }
}
