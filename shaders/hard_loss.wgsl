// Wrong values of a judged hard state are counted, per group of 32 samples: whole numbers, so atomics are exact.
// Twin: difflogic/reference/kernels/hard_loss.py
// Dispatch: x = ceil(items / WG), at most 65535, then invocations loop; y = model.
// Shapes, per model: words [chunks, C, 16]; hard_targets [groups*H*W, loss_channels]; counts [groups] of (wrong values, bits of the samples with any), flat.
#import common/shape.wgsl
#import common/states.wgsl
#import common/linear.wgsl

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<storage, read> words: array<u32>;
@group(0) @binding(2) var<storage, read> hard_targets: array<u32>;
@group(0) @binding(3) var<storage, read_write> counts: array<atomic<u32>>;

// The samples that a group really holds: probes first, then the training batch.
fn present(group: u32) -> u32 {
    var left = shape.probes - group * WORD;
    if group >= shape.probe_groups { left = shape.samples - (group - shape.probe_groups) * WORD; }
    return select((1u << (left % WORD)) - 1u, 0xffffffffu, left >= WORD);
}

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) workgroups: vec3<u32>) {
    let values = shape.cells * shape.loss_channels;
    for (var item = id.x; item < values; item += workgroups.x * WG) {
        let channel = item % shape.loss_channels;
        let cell = item / shape.loss_channels;
        let group = cell / (shape.height * shape.width);
        let word = words[state_index(id.y, cell, channel)];
        let wrong = (word ^ hard_targets[id.y * values + item]) & present(group);
        let at = (id.y * shape.batch + group) * 2u;
        atomicAdd(&counts[at], countOneBits(wrong));
        atomicOr(&counts[at + 1u], wrong);
    }
}
