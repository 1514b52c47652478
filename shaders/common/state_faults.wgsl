// Faults of states: listed [H*W], 0 for a cell that is not listed, 1 if it is stuck at 0, 2 if at 1; fault_keys [models]
// of (evaluation grids, batch). Needs both buffers and `shape`.
#import common/faults.wgsl

const OF_PROBES = 0u;
const OF_BATCH = 1u;
const FLIP_STREAM = 0x666c6970u;
const STUCK_STREAM = 0x73747563u;
const FLIPPED = 3u;

struct FaultKeys { flip: vec2<u32>, stuck: vec2<u32> }

fn keys_of(model: u32, whose: u32) -> FaultKeys {
    let key = fault_keys[2u * model + whose];
    return FaultKeys(fold_in(key, FLIP_STREAM), fold_in(key, STUCK_STREAM));
}

// 0 for a bit without a fault before a step, 1 if its cell is stuck at 0, 2 if at 1, or FLIPPED. Bits are numbered in the
// order of [samples, H, W, C], over the samples that the keys belong to.
fn fault_of(keys: FaultKeys, bit: u32, step: u32) -> u32 {
    let cell = bit / shape.channels;
    var stuck = listed[cell % shape.grid];
    if stuck == 0u { stuck = drawn_fault(keys.stuck, cell, shape.stuck); }
    if stuck > 0u { return stuck; }
    return select(0u, FLIPPED, threefry(keys.flip, vec2<u32>(bit, step)).x < shape.flip);
}
