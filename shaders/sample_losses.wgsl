// Loss of each sample after the last step.
// Reference: difflogic/reference/kernels/sample_losses.py
// Dispatch: x = batch, at most 65535, then the workgroup loops; y = model. The workgroup size is fixed: the order of
//     the sum depends on it.
// Shapes, per model: state [chunks, C, 16]; targets [chunks, loss_channels, 16]; sample_losses [B].
#import common/shape.wgsl
#import common/sum.wgsl

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<storage, read> state: array<f32>;
@group(0) @binding(2) var<storage, read> targets: array<f32>;
@group(0) @binding(3) var<storage, read_write> sample_losses: array<f32>;

fn squared_error(model: u32, cell: u32, channel: u32) -> f32 {
    let chunk = model * shape.chunks + cell / CELLS_PER_CHUNK;
    let target_ = targets[(chunk * shape.loss_channels + channel) * CELLS_PER_CHUNK + cell % CELLS_PER_CHUNK];
    let difference = state[state_index(model, cell, channel)] - target_;
    return difference * difference;
}

@compute @workgroup_size(SHARERS)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let grid = shape.height * shape.width;
    for (var sample = workgroup.x; sample < shape.batch; sample += workgroups.x) {
        var sum = 0.0;
        for (var item = thread; item < grid * shape.loss_channels; item += SHARERS) {
            sum += squared_error(workgroup.y, sample * grid + item % grid, item / grid);
        }
        let loss = joined_sum(sum, 1u, thread);
        if thread == 0u { sample_losses[workgroup.y * shape.batch + sample] = loss; }
    }
}
