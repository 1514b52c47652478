// Stuck cells: listed [H*W], fault_keys [models] of (evaluation grids, batch). Needs both buffers, common/faults.wgsl.

const OF_PROBES = 0u;
const OF_BATCH = 1u;

fn fault_key(model: u32, whose: u32, stream: u32) -> vec2<u32> {
    return fold_in(fault_keys[2u * model + whose], stream);
}

// `cell` is counted over all samples of whose it is; `key` of STUCK_STREAM.
fn stuck_cell(key: vec2<u32>, cell: u32) -> u32 {
    let given = listed[cell % (shape.height * shape.width)];
    if given > 0u { return given; }
    return drawn_fault(key, cell, shape.stuck);
}
