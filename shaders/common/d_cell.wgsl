// Scale all adjoints in patches that belong to one cell; a factor of 0 also clears values that are not finite.
// Needs `d_patches`.
#import common/d_patches.wgsl

fn scale_d_cell(model: u32, cell: u32, channel: u32, factor: f32) {
    for (var f = 0u; f < shape.adjoints; f++) {
        let there = patch_reader(cell, f);
        if there == OUTSIDE { continue; }
        let at = d_patch_index(model, there, channel * shape.adjoints + f);
        d_patches[at] = select(factor * d_patches[at], 0.0, factor == 0.0);
    }
}
