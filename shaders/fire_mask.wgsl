// Fire masks: the cells that take their new state, for all T steps of an epoch.
//
//     k1 = split(train_key)[1]    each step: k1, sub = split(k1)    mask = uniform(sub) <= fire_rate
// Reference: difflogic/reference/kernels/fire_mask.py
// Dispatch: x = ceil(pairs / WG), at most 65535, then invocations loop; y = model.
// Shapes, per model: control [8]; masks [T, H*W].
#import common/shape.wgsl
#import common/keys.wgsl

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<storage, read> control: array<u32>;
@group(0) @binding(2) var<storage, read_write> masks: array<f32>;

fn fires(word: u32) -> f32 {
    let uniform_ = bitcast<f32>((word >> 9u) | 0x3f800000u) - 1.0;
    return select(0.0, 1.0, uniform_ <= shape.fire_rate);
}

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) workgroups: vec3<u32>) {
    var chain = subkey(id.y, TRAIN_KEY);
    let count = shape.grid;
    let half = (count + 1u) / 2u;
    var step = 0u;
    for (var item = id.x; item < half * shape.steps; item += workgroups.x * WG) {
        while step < item / half {
            chain = split_first(chain);
            step++;
        }
        let i = item % half;
        let words = random_pair(split_second(chain), i, count);
        let row = (id.y * shape.steps + step) * count;
        masks[row + i] = fires(words.x);
        if i + half < count { masks[row + i + half] = fires(words.y); }
    }
}
