// Adjoint of a state, gathered from the adjoints that the next step has passed on. Cells that fired pass it to the
// circuit, others keep it. Needs `shape`, `at`, `d_next`, common/step.wgsl.
#import common/d_patches.wgsl

fn d_state(model: u32, cell: u32, channel: u32) -> f32 {
    var sum = 0.0;
    for (var f = 0u; f < rolled(shape.adjoints); f++) {
        let there = patch_reader(cell, f);
        if there != OUTSIDE { sum += d_next[d_patch_index(model, there, channel * shape.adjoints + f)]; }
    }
    return sum;
}

// Part of a state's adjoint that reaches the circuit or, if `kept`, bypasses it.
fn d_reaching(model: u32, cell: u32, channel: u32, kept: bool) -> f32 {
    if cell >= shape.cells || keeps_old_state(model, at.step, cell) != kept { return 0.0; }
    return d_state(model, cell, channel);
}

// The same for four cells.
fn d_states(model: u32, cell: u32, channel: u32, kept: bool) -> vec4<f32> {
    var d = vec4<f32>();
    for (var i = 0u; i < rolled(4u); i++) { d[i] = d_reaching(model, cell + i, channel, kept); }
    return d;
}

// Part of an output's adjoint that reaches the circuit, in four cells of a chunk.
fn d_output(model: u32, chunk: u32, output: u32, quarter: u32) -> vec4<f32> {
    if PERCEIVES == 0u { return d_outputs(model, chunk, output, quarter); }
    return d_states(model, chunk * CELLS_PER_CHUNK + quarter * 4u, output, false);
}

// Without perception `d_next` is the adjoint itself, [chunks, outputs, 16].
fn d_outputs(model: u32, chunk: u32, output: u32, quarter: u32) -> vec4<f32> {
    let first = ((model * shape.chunks + chunk) * shape.outputs + output) * CELLS_PER_CHUNK + quarter * 4u;
    return vec4<f32>(d_next[first], d_next[first + 1u], d_next[first + 2u], d_next[first + 3u]);
}
