// Gather the adjoint of a state from the adjoints of all patches that contain a cell: that of a function's initial
// state, or of every state if a device cannot bind the adjoints of all patches and binds one window after another.
// Reference: difflogic/reference/kernels/d_start.py
// Dispatch: x = ceil(values / WG), at most 65535, then invocations loop; y = model.
// Shapes: d_next [chunks [first, end) of all models, patch nodes, 16]; per model, d_start [chunks, C, 16].
#import common/shape.wgsl

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<uniform> at: StepRange;
@group(0) @binding(2) var<storage, read> d_next: array<f32>;
@group(0) @binding(3) var<storage, read_write> d_start: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) workgroups: vec3<u32>) {
    for (var item = id.x; item < shape.cells * shape.channels; item += workgroups.x * WG) {
        let cell = item / shape.channels;
        let to = state_index(id.y, cell, item % shape.channels);
        var sum = select(d_start[to], 0.0, at.first == 0u);
        for (var f = 0u; f < rolled(PATCH); f++) {
            // The neighbour whose patch contains the cell at position f is on the opposite side.
            let there = neighbour(cell, 1 - i32(f / 3u), 1 - i32(f % 3u));
            let chunk = id.y * shape.chunks + there / CELLS_PER_CHUNK;
            if there == OUTSIDE || chunk < at.first || chunk >= at.end { continue; }
            let node = (chunk - at.first) * shape.patch_nodes + item % shape.channels * PATCH + f;
            sum += d_next[node * CELLS_PER_CHUNK + there % CELLS_PER_CHUNK];
        }
        d_start[to] = sum;
    }
}
