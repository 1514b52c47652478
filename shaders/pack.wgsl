// The training batch's start grids as words, 32 samples each, behind the probes'; clears the counts.
// Twin: difflogic/reference/pack.py
// Dispatch: x = ceil(items / WG), at most 65535, then invocations loop; y = model.
// Shapes, per model: state [chunks, C, 16] of the soft shape; words [chunks, C, 16] of the hard shape; counts [groups] of (wrong values, wrong samples' bits).
#import common/shape.wgsl
#import common/states.wgsl
#import common/linear.wgsl

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<uniform> hard_shape: Shape;
@group(0) @binding(2) var<storage, read> state: array<f32>;
@group(0) @binding(3) var<storage, read_write> words: array<u32>;
@group(0) @binding(4) var<storage, read_write> counts: array<vec2<u32>>;

fn packed(model: u32, group: u32, place: u32, channel: u32) -> u32 {
    let grid = shape.height * shape.width;
    var word = 0u;
    for (var bit = 0u; bit < min(WORD, shape.batch - group * WORD); bit++) {
        let cell = (group * WORD + bit) * grid + place;
        word |= u32(state[state_index(model, cell, channel)]) << bit;
    }
    return word;
}

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) workgroups: vec3<u32>) {
    let model = id.y;
    let grid = shape.height * shape.width;
    let groups = hard_shape.batch - hard_shape.probe_groups;
    for (var item = id.x; item < groups * grid * shape.channels; item += workgroups.x * WG) {
        let channel = item % shape.channels;
        let place = item / shape.channels % grid;
        let group = item / shape.channels / grid;
        let cell = (hard_shape.probe_groups + group) * grid + place;
        let chunk = model * hard_shape.chunks + cell / CELLS_PER_CHUNK;
        words[(chunk * shape.channels + channel) * CELLS_PER_CHUNK + cell % CELLS_PER_CHUNK] =
            packed(model, group, place, channel);
    }
    for (var group = id.x; group < hard_shape.batch; group += workgroups.x * WG) {
        counts[model * hard_shape.batch + group] = vec2<u32>();
    }
}
