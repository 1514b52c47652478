// How a step forward, soft or hard, finds what a gate reads. Needs `shape` and `wires`.

// Forward every instance is in its own place.
fn wire(model: u32, place: u32) -> vec2<u32> {
    return wires[model * shape.instances + place];
}

fn instance_at(model: u32, place: u32) -> u32 {
    return place;
}

// Under SPLIT, `wires` name places in `near`.
fn near_input(level: u32, node: u32) -> u32 {
    return node;
}
