// Random faults: threefry has a key per kind, and counters per gate, cell or bit. Reference: difflogic/engine/events.py
// Needs `shape`.
#import common/threefry.wgsl

const GATE_STREAM = 0x67617465u;
const EITHER = 2u;

// 0 for an item that works, 1 if it is stuck at 0, 2 if it is stuck at 1; `key` is the key of its kind.
fn drawn_fault(key: vec2<u32>, index: u32, below: u32) -> u32 {
    let words = threefry(key, vec2<u32>(index, 0u));
    if words.x >= below { return 0u; }
    return 1u + select(shape.stuck_value, words.y & 1u, shape.stuck_value == EITHER);
}

// `key`: the subkey of the train key.
fn stuck_gate(key: vec2<u32>, gate: u32) -> u32 {
    return drawn_fault(fold_in(key, GATE_STREAM), gate, shape.stuck_gates);
}
