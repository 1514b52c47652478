// Compute targets by a rule: the target of channel 0 is the next generation of channel 0 of the initial state.
// Reference: difflogic/reference/kernels/rule_target.py
// Dispatch: x = ceil(cells / WG), at most 65535, then invocations loop; y = model.
// Shapes, per model: state [chunks, C, 16]; targets [chunks, 1, 16]. rule [512], 0 or 1, for all models.
#import common/shape.wgsl

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<storage, read> state: array<f32>;
@group(0) @binding(2) var<storage, read> rule: array<u32>;
@group(0) @binding(3) var<storage, read_write> targets: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) workgroups: vec3<u32>) {
    for (var cell = id.x; cell < shape.cells; cell += workgroups.x * WG) {
        var entry = 0u;
        for (var f = 0u; f < PATCH; f++) {
            let there = neighbour(cell, i32(f / 3u) - 1, i32(f % 3u) - 1);
            entry = 2u * entry;
            if there != OUTSIDE { entry += u32(state[state_index(id.y, there, 0u)]); }
        }
        targets[id.y * shape.chunks * CELLS_PER_CHUNK + cell] = f32(rule[entry]);
    }
}
