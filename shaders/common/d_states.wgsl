// The adjoint of a state, gathered from the patches of the step after. Needs `at`, `masks`, `d_patches`.
#import common/grid.wgsl
#import common/masks.wgsl
#import common/d_patches.wgsl

// A cell is position f of the patch of the neighbour that lies opposite f.
fn d_state(model: u32, cell: u32, channel: u32) -> f32 {
    var sum = 0.0;
    for (var f = 0u; f < PATCH; f++) {
        let there = neighbour(cell, 1 - i32(f / 3u), 1 - i32(f % 3u));
        if there != OUTSIDE {
            sum += d_patches[d_patch_index(model, at.step + 1u, there, channel * PATCH + f)];
        }
    }
    return sum;
}

// The share of a state's adjoint that reaches the circuit, or (`kept`) goes around it; four cells.
fn d_states(model: u32, cell: u32, channel: u32, kept: bool) -> vec4<f32> {
    var d = vec4<f32>();
    for (var i = 0u; i < 4u; i++) {
        if cell + i < shape.cells && keeps_old_state(model, at.step, cell + i) == kept {
            d[i] = d_state(model, cell + i, channel);
        }
    }
    return d;
}
