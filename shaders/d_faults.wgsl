// Negate the adjoint of a flipped bit, and clear that of a stuck cell.
// Reference: difflogic/reference/kernels/d_faults.py
// Dispatch: x = ceil(values / WG), at most 65535, then invocations loop; y = model.
// Shapes, per model: fault_keys [2]; listed [H*W], of all models; d_patches [chunks, C * adjoints, 16].
#import common/shape.wgsl
#import common/state_faults.wgsl
#import common/d_cell.wgsl

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<uniform> mark: EventIndex;
@group(0) @binding(2) var<storage, read> fault_keys: array<vec2<u32>>;
@group(0) @binding(3) var<storage, read> listed: array<u32>;
@group(0) @binding(4) var<storage, read_write> d_patches: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) workgroups: vec3<u32>) {
    let keys = keys_of(id.y, OF_BATCH);
    for (var item = id.x; item < shape.cells * shape.channels; item += workgroups.x * WG) {
        let fault = fault_of(keys, item, mark.step);
        let factor = select(0.0, -1.0, fault == FLIPPED);
        if fault > 0u { scale_d_cell(id.y, item / shape.channels, item % shape.channels, factor); }
    }
}
