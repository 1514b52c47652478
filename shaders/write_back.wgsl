// Write the batch's last states, rounded, back into the pool. New initial states replace the samples with the largest
// loss (of equal losses, the first). A skipped epoch writes nothing.
// Reference: difflogic/reference/kernels/write_back.py
// Dispatch: x = ceil(words / WG), at most 65535, then invocations loop; y = model.
// Shapes, per model: control [8]; state, fresh [chunks, C, 16]; sample_losses, places [B];
//     pool [pool, ceil(H*W*C / 32)] words of 32 values.
#import common/shape.wgsl
#import common/control.wgsl

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<storage, read> control: array<u32>;
@group(0) @binding(2) var<storage, read> state: array<f32>;
@group(0) @binding(3) var<storage, read> fresh: array<f32>;
@group(0) @binding(4) var<storage, read> sample_losses: array<f32>;
@group(0) @binding(5) var<storage, read> places: array<u32>;
@group(0) @binding(6) var<storage, read_write> pool: array<u32>;

fn is_worst(model: u32, sample: u32) -> bool {
    let own = sample_losses[model * shape.batch + sample];
    var ahead = 0u;
    for (var other = 0u; other < shape.batch; other++) {
        let loss = sample_losses[model * shape.batch + other];
        ahead += u32(loss > own || (loss == own && other < sample));
    }
    return ahead < shape.resets;
}

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) workgroups: vec3<u32>) {
    if control[id.y * CONTROL_WORDS + NONFINITE] != 0u { return; }
    for (var item = id.x; item < shape.batch * shape.grid_words; item += workgroups.x * WG) {
        let sample = item / shape.grid_words;
        let first = item % shape.grid_words * WORD;
        let worst = is_worst(id.y, sample);
        var word = 0u;
        for (var value = first; value < min(first + WORD, shape.grid * shape.channels); value++) {
            let index = state_index(id.y, sample * shape.grid + value / shape.channels, value % shape.channels);
            var y = state[index];
            if worst { y = fresh[index]; }
            word |= u32(y > 0.5) << (value - first);
        }
        pool[(id.y * shape.pool + places[id.y * shape.batch + sample]) * shape.grid_words + first / WORD] = word;
    }
}
