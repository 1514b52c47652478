// Set squares of a state to zero in all channels.
// Reference: difflogic/reference/kernels/damage.py
// Dispatch: x = ceil(values / WG), at most 65535, then invocations loop; y = model.
// Shapes, per model: corners [D, samples]; state [chunks, C, 16].
#import common/shape.wgsl
#import common/corners.wgsl

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<uniform> mark: EventIndex;
@group(0) @binding(2) var<storage, read> corners: array<vec2<u32>>;
@group(0) @binding(3) var<storage, read_write> state: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) workgroups: vec3<u32>) {
    let values = shape.batch * shape.damage_side * shape.damage_side * shape.channels;
    for (var item = id.x; item < values; item += workgroups.x * WG) {
        let cell = damaged_cell(id.y, mark.damage, item);
        if cell != OUTSIDE { state[state_index(id.y, cell, item % shape.channels)] = 0.0; }
    }
}
