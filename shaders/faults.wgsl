// Flip bits and apply stuck cells in a state before a step.
//
//     x = 1 - x if random_word(flip key, bit, step) < flip, then 0 or 1 if the cell is stuck
// Reference: difflogic/reference/kernels/faults.py
// Dispatch: x = ceil(values / WG), at most 65535, then invocations loop; y = model.
// Shapes, per model: fault_keys [2]; listed [H*W], of all models; state [chunks, C, 16].
#import common/shape.wgsl
#import common/grid.wgsl
#import common/states.wgsl
#import common/corners.wgsl
#import common/threefry.wgsl
#import common/faults.wgsl
#import common/linear.wgsl

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<uniform> mark: EventIndex;
@group(0) @binding(2) var<storage, read> fault_keys: array<vec2<u32>>;
@group(0) @binding(3) var<storage, read> listed: array<u32>;
@group(0) @binding(4) var<storage, read_write> state: array<f32>;

#import common/stuck_cells.wgsl

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) workgroups: vec3<u32>) {
    let flip_key = fault_key(id.y, OF_BATCH, FLIP_STREAM);
    let stuck_key = fault_key(id.y, OF_BATCH, STUCK_STREAM);
    for (var item = id.x; item < shape.cells * shape.channels; item += workgroups.x * WG) {
        let cell = item / shape.channels;
        let at = state_index(id.y, cell, item % shape.channels);
        let stuck = stuck_cell(stuck_key, cell);
        if stuck > 0u {
            state[at] = f32(stuck - 1u);
        } else if flips(flip_key, item, mark.step) {
            state[at] = 1.0 - state[at];
        }
    }
}
