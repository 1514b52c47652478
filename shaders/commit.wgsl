// End of the gradient computation: write the loss into the history, and advance keys and counters by one epoch.
// An epoch whose loss or gradient is not finite is counted as skipped, and makes no optimiser step.
// Reference: difflogic/reference/kernels/commit.py
// Dispatch: x = 1; y = model. The workgroup size is fixed: the order of the sum depends on it.
// Shapes, per model: loss_partials [J, chunks]; control [8]. history [ring, models] of (loss bits, skipped).
#import common/shape.wgsl
#import common/finite.wgsl
#import common/sum.wgsl
#import common/threefry.wgsl
#import common/control.wgsl

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<storage, read> loss_partials: array<f32>;
@group(0) @binding(2) var<storage, read_write> control: array<u32>;
@group(0) @binding(3) var<storage, read_write> history: array<vec2<u32>>;

fn advance(at: u32) {
    let key = split_first(vec2<u32>(control[at], control[at + 1u]));
    control[at] = key.x;
    control[at + 1u] = key.y;
}

@compute @workgroup_size(SHARERS)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let model = workgroup.y;
    var sum = 0.0;
    for (var chunk = thread; chunk < shape.chunks; chunk += SHARERS) {  // however many chunks fill up the last ones
        for (var judged = 0u; judged < shape.judged; judged++) {
            sum += loss_partials[(model * shape.judged + judged) * shape.chunks + chunk];
        }
    }
    let loss = joined_sum(sum, 1u, thread);
    if thread > 0u { return; }
    let words = model * CONTROL_WORDS;
    let skipped = select(1u, control[words + NONFINITE], is_finite(loss));
    control[words + NONFINITE] = skipped;
    control[words + STEP] += 1u - skipped;
    control[words + SKIPPED] += skipped;
    history[(control[words + EPOCH] % shape.history) * workgroups.y + model] = vec2<u32>(bitcast<u32>(loss), skipped);
    control[words + EPOCH] += 1u;
    advance(words + DATA_KEY);
    advance(words + TRAIN_KEY);
}
