// Loss of each sample after the last step.
// Reference: difflogic/reference/kernels/sample_losses.py
// Dispatch: x = batch, at most 65535, then the workgroup loops; y = model. The workgroup size is fixed: the order of
//     the sum depends on it.
// Shapes, per model: state [chunks, C, 16]; targets [J, chunks, loss_channels, 16], of which the last is read;
//     sample_losses [B].
#import common/shape.wgsl
#import common/sum.wgsl
#import common/targets.wgsl

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<storage, read> state: array<f32>;
@group(0) @binding(2) var<storage, read> targets: array<f32>;
@group(0) @binding(3) var<storage, read_write> sample_losses: array<f32>;

@compute @workgroup_size(SHARERS)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    for (var sample = workgroup.x; sample < shape.batch; sample += workgroups.x) {
        var sum = 0.0;
        for (var item = thread; item < shape.grid * shape.loss_channels; item += SHARERS) {
            let cell = sample * shape.grid + item % shape.grid;
            let error = target_error(workgroup.y, shape.targets - 1u, cell, item / shape.grid);
            sum += error * error;
        }
        let loss = joined_sum(sum, 1u, thread);
        if thread == 0u { sample_losses[workgroup.y * shape.batch + sample] = loss; }
    }
}
