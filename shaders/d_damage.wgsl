// Clear the adjoints of damaged cells, which are stored in the patches of their neighbours.
// Reference: difflogic/reference/kernels/d_damage.py
// Dispatch: x = ceil(values / WG), at most 65535, then invocations loop; y = model.
// Shapes, per model: corners [D, samples]; d_patches [chunks, C * adjoints, 16].
#import common/shape.wgsl
#import common/corners.wgsl
#import common/d_cell.wgsl

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<uniform> mark: EventIndex;
@group(0) @binding(2) var<storage, read> corners: array<vec2<u32>>;
@group(0) @binding(3) var<storage, read_write> d_patches: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) workgroups: vec3<u32>) {
    let values = shape.batch * shape.damage_side * shape.damage_side * shape.channels;
    for (var item = id.x; item < values; item += workgroups.x * WG) {
        let cell = damaged_cell(id.y, mark.damage, item);
        if cell != OUTSIDE { scale_d_cell(id.y, cell, item % shape.channels, 0.0); }
    }
}
