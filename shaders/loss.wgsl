// The loss of the last state, per chunk, and its adjoint.
//
//     loss = sum (y - target)^2    d_y = 2 (y - target)
//
// The adjoint goes where a cell's own patch has it, the centre, and 0 everywhere else: the first
// backward step then gathers it like every other.
// Twin: difflogic/reference/loss.py
// Dispatch: x = chunks, at most 65535, then the workgroup loops; y = model.
// Shapes, per model: states [T+1, chunks, C, 16]; targets [chunks, loss_channels, 16];
//     d_patches [2, chunks, 9*C, 16]; loss_partials [chunks]; control [8].
#import common/shape.wgsl
#import common/states.wgsl
#import common/control.wgsl
#import common/linear.wgsl

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<storage, read> states: array<f32>;
@group(0) @binding(2) var<storage, read> targets: array<f32>;
@group(0) @binding(3) var<storage, read_write> d_patches: array<f32>;
@group(0) @binding(4) var<storage, read_write> loss_partials: array<f32>;
@group(0) @binding(5) var<storage, read_write> control: array<u32>;

#import common/d_patches.wgsl

fn difference(model: u32, cell: u32, channel: u32) -> f32 {
    if cell >= shape.cells { return 0.0; }
    let chunk = model * shape.chunks + cell / CELLS_PER_CHUNK;
    let target_ = targets[(chunk * shape.loss_channels + channel) * CELLS_PER_CHUNK + cell % CELLS_PER_CHUNK];
    return states[state_index(model, shape.steps, cell, channel)] - target_;
}

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let model = workgroup.y;
    if workgroup.x == 0u && thread == 0u { control[model * CONTROL_WORDS + NONFINITE] = 0u; }
    for (var chunk = workgroup.x; chunk < shape.chunks; chunk += workgroups.x) {
        let cell = chunk * CELLS_PER_CHUNK;
        for (var item = thread; item < shape.patch_nodes * CELLS_PER_CHUNK; item += WG) {
            let node = item / CELLS_PER_CHUNK;
            let there = cell + item % CELLS_PER_CHUNK;
            var d = 0.0;
            if node % PATCH == CENTRE && node / PATCH < shape.loss_channels {
                d = 2.0 * difference(model, there, node / PATCH);
            }
            d_patches[d_patch_index(model, shape.steps, there, node)] = d;
        }
        if thread == 0u {
            var sum = 0.0;
            for (var item = 0u; item < shape.loss_channels * CELLS_PER_CHUNK; item++) {
                let error = difference(model, cell + item % CELLS_PER_CHUNK, item / CELLS_PER_CHUNK);
                sum += error * error;
            }
            loss_partials[model * shape.chunks + chunk] = sum;
        }
    }
}
