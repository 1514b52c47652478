// Pack the batch's initial states and targets into words of 32 samples, after the evaluation grids; clear the counts.
// Reference: difflogic/reference/kernels/pack.py
// Dispatch: x = ceil(items / WG), at most 65535, then invocations loop; y = model.
// Shapes, per model: state [chunks, C, 16] and targets [J, chunks, loss_channels, 16] of the soft shape; words
//     [chunks, C, 16] and hard_targets [J, groups*H*W, loss_channels] of (values, mask that counts) of the hard shape;
//     counts [groups] of (mismatches, bits of the samples with any).
#import common/shape.wgsl
#import common/targets.wgsl

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<uniform> hard_shape: Shape;
@group(0) @binding(2) var<storage, read> state: array<f32>;
@group(0) @binding(3) var<storage, read> targets: array<f32>;
@group(0) @binding(4) var<storage, read_write> words: array<u32>;
@group(0) @binding(5) var<storage, read_write> hard_targets: array<vec2<u32>>;
@group(0) @binding(6) var<storage, read_write> counts: array<vec2<u32>>;

// Bit b of a word belongs to sample b of the group.
fn packed_state(model: u32, group: u32, place: u32, channel: u32) -> u32 {
    var word = 0u;
    for (var bit = 0u; bit < min(WORD, shape.batch - group * WORD); bit++) {
        word |= u32(state[state_index(model, (group * WORD + bit) * shape.grid + place, channel)] > 0.5) << bit;
    }
    return word;
}

fn packed_targets(model: u32, group: u32, place: u32, row: u32) -> vec2<u32> {
    var words = vec2<u32>();
    for (var bit = 0u; bit < min(WORD, shape.batch - group * WORD); bit++) {
        let cell = (group * WORD + bit) * shape.grid + place;
        let wanted = targets[target_index(model, row / shape.loss_channels, cell, row % shape.loss_channels)];
        words |= vec2<u32>(vec2<bool>(wanted > 0.5, wanted != IGNORED)) << vec2<u32>(bit);
    }
    return words;
}

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) workgroups: vec3<u32>) {
    let model = id.y;
    let groups = hard_shape.batch - hard_shape.probe_groups;
    let rows = shape.channels + shape.targets * shape.loss_channels;  // the targets' come last
    for (var item = id.x; item < groups * shape.grid * rows; item += workgroups.x * WG) {
        let row = item % rows;
        let place = item / rows % shape.grid;
        let group = item / rows / shape.grid;
        let cell = (hard_shape.probe_groups + group) * shape.grid + place;
        if row >= shape.channels {
            let target_row = row - shape.channels;
            let first = (model * shape.targets + target_row / shape.loss_channels) * hard_shape.cells + cell;
            let index = first * shape.loss_channels + target_row % shape.loss_channels;
            hard_targets[index] = packed_targets(model, group, place, target_row);
            continue;
        }
        let chunk = model * hard_shape.chunks + cell / CELLS_PER_CHUNK;
        let index = (chunk * shape.channels + row) * CELLS_PER_CHUNK + cell % CELLS_PER_CHUNK;
        words[index] = packed_state(model, group, place, row);
    }
    for (var group = id.x; group < hard_shape.batch; group += workgroups.x * WG) {
        counts[model * hard_shape.batch + group] = vec2<u32>();
    }
}
