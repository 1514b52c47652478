// Count the mismatches of an evaluated hard state per group of 32 samples: integers, so atomics are exact.
// Reference: difflogic/reference/kernels/hard_loss.py
// Dispatch: x = ceil(items / WG), at most 65535, then invocations loop; y = model.
// Shapes, per model: words [chunks, C, 16]; hard_targets [J, groups*H*W, loss_channels] of (values, mask that counts);
//     counts [groups] of (mismatches, bits of the samples with any), flat.
#import common/shape.wgsl

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<uniform> mark: EventIndex;
@group(0) @binding(2) var<storage, read> words: array<u32>;
@group(0) @binding(3) var<storage, read> hard_targets: array<vec2<u32>>;
@group(0) @binding(4) var<storage, read_write> counts: array<atomic<u32>>;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) workgroups: vec3<u32>) {
    let values = shape.cells * shape.loss_channels;
    let first = (id.y * shape.targets + mark.judged % shape.targets) * values;
    for (var item = id.x; item < values; item += workgroups.x * WG) {
        let channel = item % shape.loss_channels;
        let cell = item / shape.loss_channels;
        let group = cell / shape.grid;
        let word = words[state_index(id.y, cell, channel)];
        let wanted = hard_targets[first + item];
        let wrong = (word ^ wanted.x) & wanted.y;
        let at = (id.y * shape.batch + group) * 2u;
        atomicAdd(&counts[at], countOneBits(wrong));
        atomicOr(&counts[at + 1u], wrong);
    }
}
