// Store the key of an epoch's faults, since its batch is evaluated after the keys in control have advanced.
//
//     key = split(train_key)[1]
// Reference: difflogic/reference/kernels/draw_faults.py
// Dispatch: one workgroup; y = model.
// Shapes, per model: control [8]; fault_keys [2], of the evaluation grids and of the batch.
#import common/shape.wgsl
#import common/keys.wgsl

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<storage, read> control: array<u32>;
@group(0) @binding(2) var<storage, read_write> fault_keys: array<vec2<u32>>;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x > 0u { return; }
    fault_keys[2u * id.y + 1u] = subkey(id.y, TRAIN_KEY);
}
