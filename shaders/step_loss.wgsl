// Loss of a state before the last one, per chunk, and its adjoint, stored for the backward pass.
//
//     loss = sum (y - target)^2    d_y = 2 (y - target)    of the values that count
// Reference: difflogic/reference/kernels/step_loss.py
// Dispatch: x = ceil(chunks / WG), at most 65535, then invocations loop; y = model.
// Shapes, per model: state [chunks, C, 16]; targets [J, chunks, loss_channels, 16];
//     d_judged [J-1, chunks, loss_channels, 16]; loss_partials [J, chunks].
#import common/shape.wgsl
#import common/targets.wgsl

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<uniform> mark: EventIndex;
@group(0) @binding(2) var<storage, read> state: array<f32>;
@group(0) @binding(3) var<storage, read> targets: array<f32>;
@group(0) @binding(4) var<storage, read_write> d_judged: array<f32>;
@group(0) @binding(5) var<storage, read_write> loss_partials: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) workgroups: vec3<u32>) {
    let each = shape.loss_channels * CELLS_PER_CHUNK;
    for (var chunk = id.x; chunk < shape.chunks; chunk += workgroups.x * WG) {
        let to = ((id.y * (shape.judged - 1u) + mark.judged) * shape.chunks + chunk) * each;
        var sum = 0.0;
        for (var item = 0u; item < each; item++) {
            let cell = chunk * CELLS_PER_CHUNK + item % CELLS_PER_CHUNK;
            let error = target_error(id.y, mark.judged % shape.targets, cell, item / CELLS_PER_CHUNK);
            d_judged[to + item] = 2.0 * error;
            sum += error * error;
        }
        loss_partials[(id.y * shape.judged + mark.judged) * shape.chunks + chunk] = sum;
    }
}
