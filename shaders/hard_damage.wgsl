// Set squares of a hard state to zero in all channels, in each sample's bits.
// Reference: difflogic/reference/kernels/hard_damage.py
// Dispatch: x = ceil(cells / WG), at most 65535, then invocations loop; y = model.
// Shapes, per model: corners [D, samples]; words [chunks, C, 16].
#import common/shape.wgsl
#import common/corners.wgsl

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<uniform> mark: EventIndex;
@group(0) @binding(2) var<storage, read> corners: array<vec2<u32>>;
@group(0) @binding(3) var<storage, read_write> words: array<u32>;

// Mask of the samples of a group whose squares contain the cell.
fn hit(model: u32, cell: u32) -> u32 {
    // The batch's initial states come from the soft pass, which has applied the damage and faults of step 0.
    if mark.step == 0u && cell / shape.grid >= shape.probe_groups { return 0u; }
    let place = vec2<u32>(cell % shape.grid / shape.width, cell % shape.width);
    var bits = 0u;
    for (var bit = 0u; bit < WORD; bit++) {
        // below the corner the difference wraps to a large number
        let beyond = place - corners[corner_index(model, mark.damage, cell / shape.grid * WORD + bit)];
        bits |= u32(all(beyond < vec2<u32>(shape.damage_side))) << bit;
    }
    return bits;
}

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) workgroups: vec3<u32>) {
    for (var cell = id.x; cell < shape.cells; cell += workgroups.x * WG) {
        let stays = ~hit(id.y, cell);
        for (var channel = 0u; channel < shape.channels; channel++) {
            words[state_index(id.y, cell, channel)] &= stays;
        }
    }
}
