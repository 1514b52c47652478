// Loss of the last state, per chunk, and its adjoint.
//
//     loss = sum (y - target)^2    d_y = 2 (y - target)    of the values that count
// The adjoint is written to the centre of a cell's own patch, with 0 everywhere else, where the first backward step
// gathers it.
// Reference: difflogic/reference/kernels/loss.py
// Dispatch: x = chunks, at most 65535, then the workgroup loops; y = model.
// Shapes, per model: state [chunks, C, 16]; targets [J, chunks, loss_channels, 16], of which the last is read;
//     d_patches [chunks, C * adjoints, 16]; loss_partials [J, chunks], the last row; control [8].
#import common/shape.wgsl
#import common/targets.wgsl
#import common/control.wgsl
#import common/d_patches.wgsl

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<storage, read> state: array<f32>;
@group(0) @binding(2) var<storage, read> targets: array<f32>;
@group(0) @binding(3) var<storage, read_write> d_patches: array<f32>;
@group(0) @binding(4) var<storage, read_write> loss_partials: array<f32>;
@group(0) @binding(5) var<storage, read_write> control: array<u32>;

// Errors of one channel in a chunk's cells; each invocation adds their squares in order.
var<workgroup> errors: array<f32, CELLS_PER_CHUNK>;

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let model = workgroup.y;
    let last = shape.targets - 1u;
    if workgroup.x == 0u && thread == 0u { control[model * CONTROL_WORDS + NONFINITE] = 0u; }
    for (var chunk = workgroup.x; chunk < shape.chunks; chunk += workgroups.x) {
        let cell = chunk * CELLS_PER_CHUNK;
        for (var item = thread; item < shape.channels * shape.adjoints * CELLS_PER_CHUNK; item += WG) {
            let node = item / CELLS_PER_CHUNK;
            let i = item % CELLS_PER_CHUNK;
            var d = 0.0;
            if node % shape.adjoints == shape.adjoints / 2u && node / shape.adjoints < shape.loss_channels {
                d = 2.0 * target_error(model, last, cell + i, node / shape.adjoints);
            }
            d_patches[d_patch_index(model, cell + i, node)] = d;
        }
        var sum = 0.0;
        for (var channel = 0u; channel < shape.loss_channels; channel++) {
            if thread < CELLS_PER_CHUNK { errors[thread] = target_error(model, last, cell + thread, channel); }
            workgroupBarrier();
            for (var i = 0u; i < CELLS_PER_CHUNK; i++) { sum += errors[i] * errors[i]; }
            workgroupBarrier();
        }
        if thread == 0u {
            loss_partials[(model * shape.judged + shape.judged - 1u) * shape.chunks + chunk] = sum;
        }
    }
}
