// Clip by the global norm: scale all gradients of a model by one factor, so that their norm is at most `clip`.
//
//     s = sum over all parameters of (g / clip)^2    g = g / sqrt(s) if s > 1
// A sum that is not finite sets NONFINITE.
// Reference: difflogic/reference/kernels/clip_norm.py
// Dispatch: x = 1; y = model. The workgroup size is fixed: the order of the sum depends on it.
// Shapes, per model: gradients [parameter rows, 16]; control [8].
#import common/shape.wgsl
#import common/finite.wgsl
#import common/sum.wgsl
#import common/control.wgsl
#import common/candidates.wgsl

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<storage, read_write> gradients: array<array<f32, 16>>;
@group(0) @binding(2) var<storage, read_write> control: array<u32>;

@compute @workgroup_size(SHARERS)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let first = workgroup.y * parameter_rows();
    var sum = 0.0;
    for (var row = thread; row < parameter_rows(); row += SHARERS) {
        for (var i = 0u; i < GATES; i++) {
            let share = gradients[first + row][i] / shape.clip;
            sum += share * share;
        }
    }
    let total = joined_sum(sum, 1u, thread);
    if thread == 0u && !is_finite(total) { control[workgroup.y * CONTROL_WORDS + NONFINITE] = 1u; }
    if total <= 1.0 { return; }
    let norm = sqrt(total);
    for (var row = thread; row < parameter_rows(); row += SHARERS) {
        for (var i = 0u; i < GATES; i++) { gradients[first + row][i] /= norm; }
    }
}
