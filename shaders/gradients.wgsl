// Gradients of logits from the moments of instances; a gradient that is not finite sets NONFINITE.
//
//     moments = sum over blocks, quarters and replicas    d_w = TABLE @ moments    d_logits = w * (d_w - sum(w * d_w))
// The gradients of a gate that is stuck in this epoch are 0. With candidates, d_w of a share is the moment of its
// candidate, and the logits of wires follow those of gates.
// Eight invocations share a gate: each sums every eighth quarter of a block, then a fixed tree adds these sums.
// Reference: difflogic/reference/kernels/gradients.py
// Dispatch: x = ceil(gates / (WG / 8)); y = model.
// Shapes, per model: partials [blocks, 4, instances, record]; logits, gradients [parameter rows, 16]; control [8].
#import common/shape.wgsl
#import common/gates.wgsl
#import common/finite.wgsl
#import common/faults.wgsl
#import common/control.wgsl
#import common/candidates.wgsl

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<storage, read> partials: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> logits: array<array<f32, 16>>;
@group(0) @binding(3) var<storage, read_write> gradients: array<array<f32, 16>>;
@group(0) @binding(4) var<storage, read_write> control: array<atomic<u32>>;

const SHARERS = 8u;

var<workgroup> sums: array<vec4<f32>, WG>;

fn level_of(gate: u32) -> vec4<u32> {
    var l = shape.levels - 1u;
    while shape.level_table[l].z > gate { l--; }
    return shape.level_table[l];
}

// Sum of the vec4 `part` of the records; part 0 contains the moments of functions.
fn sum_share(model: u32, gate: u32, share: u32, part: u32) -> vec4<f32> {
    let level = level_of(gate);
    let first = level.x + (gate - level.z) * level.w;
    var sum = vec4<f32>();
    // With 5 blocks of 4 quarters, share 0 adds quarters 0, 8 and 16, share 3 adds 3, 11 and 19, share 4 adds 4 and 12.
    for (var quarter = share; quarter < 4u * shape.blocks; quarter += SHARERS) {
        let at = (model * 4u * shape.blocks + quarter) * shape.instances + first;
        for (var replica = 0u; replica < level.w; replica++) { sum += partials[(at + replica) * record() + part]; }
    }
    return sum;
}

fn is_stuck(model: u32, gate: u32) -> bool {
    if shape.stuck_gates == 0u { return false; }
    let words = model * CONTROL_WORDS + TRAIN_KEY;
    let key = vec2<u32>(atomicLoad(&control[words]), atomicLoad(&control[words + 1u]));
    return stuck_gate(split_second(key), gate) > 0u;
}

// Store the gradients of `count` logits of a row from `first` on; `d` are the adjoints of their softmax.
fn put_gradients(model: u32, row: u32, first: u32, count: u32, d: array<f32, 16>, stuck: bool) {
    var d_share = d;
    var share = choice(logits[model * parameter_rows() + row], first, count).share;
    var mean = 0.0;
    for (var i = 0u; i < count; i++) { mean += share[first + i] * d_share[i]; }
    for (var i = 0u; i < count; i++) {
        let d_logit = select(share[first + i] * (d_share[i] - mean), 0.0, stuck);
        if !is_finite(d_logit) { atomicMax(&control[model * CONTROL_WORDS + NONFINITE], 1u); }
        gradients[model * parameter_rows() + row][first + i] = d_logit;
    }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let model = workgroup.y;
    let gate = (workgroup.x * WG + thread) / SHARERS;
    let share = thread % SHARERS;
    var of_function = vec4<f32>();
    var of_wires = array<vec4<f32>, 8>();
    for (var part = 0u; part < record(); part++) {
        if part > 0u { workgroupBarrier(); }
        sums[thread] = vec4<f32>();
        if gate < shape.gates { sums[thread] = sum_share(model, gate, share, part); }
        for (var reach = SHARERS / 2u; reach > 0u; reach /= 2u) {
            workgroupBarrier();
            if share < reach { sums[thread] += sums[thread + reach]; }
        }
        if part == 0u { of_function = sums[thread]; } else { of_wires[part - 1u] = sums[thread]; }
    }
    if share > 0u || gate >= shape.gates { return; }
    let stuck = is_stuck(model, gate);
    var d: array<f32, 16>;
    for (var i = 0u; i < GATES; i++) { d[i] = dot(gate_coefficients(i), of_function); }
    put_gradients(model, gate, 0u, GATES, d, stuck);
    if CANDIDATES == 1u { return; }
    for (var side = 0u; side < 2u; side++) {
        let first = (2u * gate + side) * CANDIDATES;
        for (var i = 0u; i < CANDIDATES; i++) {
            let k = side * CANDIDATES + i;
            d[i] = of_wires[k / 4u][k % 4u];
        }
        put_gradients(model, shape.gates + first / GATES, first % GATES, CANDIDATES, d, stuck);
    }
    if gate + 1u < shape.gates { return; }
    // Set the rest of the last row, which belongs to no wire, to zeros.
    for (var i = 2u * CANDIDATES * shape.gates; i < (parameter_rows() - shape.gates) * GATES; i++) {
        gradients[model * parameter_rows() + shape.gates + i / GATES][i % GATES] = 0.0;
    }
}
