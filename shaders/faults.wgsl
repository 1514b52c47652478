// Flip bits and apply stuck cells in a state before a step.
//
//     x = 1 - x if random_word(flip key, bit, step) < flip, then 0 or 1 if the cell is stuck
// Reference: difflogic/reference/kernels/faults.py
// Dispatch: x = ceil(values / WG), at most 65535, then invocations loop; y = model.
// Shapes, per model: fault_keys [2]; listed [H*W], of all models; state [chunks, C, 16].
#import common/shape.wgsl
#import common/state_faults.wgsl

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<uniform> mark: EventIndex;
@group(0) @binding(2) var<storage, read> fault_keys: array<vec2<u32>>;
@group(0) @binding(3) var<storage, read> listed: array<u32>;
@group(0) @binding(4) var<storage, read_write> state: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) workgroups: vec3<u32>) {
    let keys = keys_of(id.y, OF_BATCH);
    for (var item = id.x; item < shape.cells * shape.channels; item += workgroups.x * WG) {
        let at = state_index(id.y, item / shape.channels, item % shape.channels);
        let fault = fault_of(keys, item, mark.step);
        if fault == FLIPPED {
            state[at] = 1.0 - state[at];
        } else if fault > 0u {
            state[at] = f32(fault - 1u);
        }
    }
}
