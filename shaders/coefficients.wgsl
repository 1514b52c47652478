// Compute the coefficients of soft gates, and the ids of hard gates, from uploaded logits.
//
//     coefficients = softmax(logits) @ TABLE    gate_id = argmax(logits)
// Reference: difflogic/reference/kernels/coefficients.py
// Dispatch: x = ceil(parameter rows / WG); y = model.
// Shapes, per model: logits [parameter rows, 16]; coefficients [gates, record]; gate_ids [gates], with candidates
//     [gates * 3].
#import common/shape.wgsl
#import common/gates.wgsl
#import common/parameters.wgsl

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<storage, read> logits: array<array<f32, 16>>;
@group(0) @binding(2) var<storage, read_write> coefficients: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> gate_ids: array<u32>;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= parameter_rows() { return; }
    put_parameters(id.y, id.x, logits[id.y * parameter_rows() + id.x]);
}
