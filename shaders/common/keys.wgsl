// Random keys of an epoch. Needs `control`.
#import common/control.wgsl
#import common/threefry.wgsl

// split(key)[1] of a key in the control block of a model: DATA_KEY or TRAIN_KEY.
fn subkey(model: u32, key: u32) -> vec2<u32> {
    let at = model * CONTROL_WORDS + key;
    return split_second(vec2<u32>(control[at], control[at + 1u]));
}
