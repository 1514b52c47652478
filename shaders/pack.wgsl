// The training batch's start grids and targets as words, 32 samples each, behind the probes'; clears the counts.
// Twin: difflogic/reference/kernels/pack.py
// Dispatch: x = ceil(items / WG), at most 65535, then invocations loop; y = model.
// Shapes, per model: state [chunks, C, 16] and targets [chunks, loss_channels, 16] of the soft shape; words
//     [chunks, C, 16] and hard_targets [groups*H*W, loss_channels] of the hard shape; counts [groups] of
//     (wrong values, wrong samples' bits).
#import common/shape.wgsl
#import common/states.wgsl
#import common/linear.wgsl

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<uniform> hard_shape: Shape;
@group(0) @binding(2) var<storage, read> state: array<f32>;
@group(0) @binding(3) var<storage, read> targets: array<f32>;
@group(0) @binding(4) var<storage, read_write> words: array<u32>;
@group(0) @binding(5) var<storage, read_write> hard_targets: array<u32>;
@group(0) @binding(6) var<storage, read_write> counts: array<vec2<u32>>;

fn value(model: u32, cell: u32, channel: u32) -> f32 {
    if channel < shape.channels { return state[state_index(model, cell, channel)]; }
    let chunk = model * shape.chunks + cell / CELLS_PER_CHUNK;
    let row = chunk * shape.loss_channels + channel - shape.channels;
    return targets[row * CELLS_PER_CHUNK + cell % CELLS_PER_CHUNK];
}

fn packed(model: u32, group: u32, place: u32, channel: u32) -> u32 {
    let grid = shape.height * shape.width;
    var word = 0u;
    for (var bit = 0u; bit < min(WORD, shape.batch - group * WORD); bit++) {
        word |= u32(value(model, (group * WORD + bit) * grid + place, channel) > 0.5) << bit;
    }
    return word;
}

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) workgroups: vec3<u32>) {
    let model = id.y;
    let grid = shape.height * shape.width;
    let groups = hard_shape.batch - hard_shape.probe_groups;
    let channels = shape.channels + shape.loss_channels;  // the targets' come last
    for (var item = id.x; item < groups * grid * channels; item += workgroups.x * WG) {
        let channel = item % channels;
        let place = item / channels % grid;
        let group = item / channels / grid;
        let cell = (hard_shape.probe_groups + group) * grid + place;
        let word = packed(model, group, place, channel);
        if channel >= shape.channels {
            let row = model * hard_shape.cells + cell;
            hard_targets[row * shape.loss_channels + channel - shape.channels] = word;
            continue;
        }
        let chunk = model * hard_shape.chunks + cell / CELLS_PER_CHUNK;
        words[(chunk * shape.channels + channel) * CELLS_PER_CHUNK + cell % CELLS_PER_CHUNK] = word;
    }
    for (var group = id.x; group < hard_shape.batch; group += workgroups.x * WG) {
        counts[model * hard_shape.batch + group] = vec2<u32>();
    }
}
