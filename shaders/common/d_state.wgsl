// Adjoint of a cell's state, gathered from the adjoints that the next step has passed on. Needs `shape` and `d_next`.
#import common/d_patches.wgsl

fn d_state(model: u32, cell: u32, channel: u32) -> f32 {
    var sum = 0.0;
    for (var f = 0u; f < rolled(shape.adjoints); f++) {
        let there = patch_reader(cell, f);
        if there != OUTSIDE { sum += d_next[d_patch_index(model, there, channel * shape.adjoints + f)]; }
    }
    return sum;
}
