// Coefficients of an epoch with hardening or stuck gates. A stuck gate has those of a constant, a gate sampled as hard
// those of its most probable function, any other those of the softmax. The wires of a hard gate are hard, too.
//
//     key = fold_in(split(train_key)[1], STREAM)    hard: 16 high bits of word `gate` of bits(key) < share
//     share = peak * min(max(epoch - first, 0), length) / length, all integers
// Reference: difflogic/reference/kernels/harden.py
// Dispatch: x = ceil(parameter rows / WG); y = model.
// Shapes, per model: control [8]; logits [parameter rows, 16]; coefficients [gates, record].
#import common/shape.wgsl
#import common/gates.wgsl
#import common/keys.wgsl
#import common/faults.wgsl
#import common/candidates.wgsl
#import common/shares.wgsl

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<storage, read> control: array<u32>;
@group(0) @binding(2) var<storage, read> logits: array<array<f32, 16>>;
@group(0) @binding(3) var<storage, read_write> coefficients: array<vec4<f32>>;

const STREAM = 0x68617264u;

fn share(epoch: u32) -> u32 {
    let grown = min(max(epoch, shape.harden_first) - shape.harden_first, shape.harden_length);
    return shape.harden_peak * grown / shape.harden_length;
}

fn is_drawn(gate: u32, epoch: u32, key: vec2<u32>) -> bool {
    return random_word(fold_in(key, STREAM), gate, shape.gates) >> 16u < share(epoch);
}

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= parameter_rows() { return; }
    let row = id.y * parameter_rows() + id.x;
    let key = subkey(id.y, TRAIN_KEY);
    let epoch = control[id.y * CONTROL_WORDS + EPOCH];
    if id.x >= shape.gates {
        for (var first = 0u; first < GATES; first += CANDIDATES) {
            let wire = ((id.x - shape.gates) * GATES + first) / CANDIDATES;
            if wire >= 2u * shape.gates { return; }
            put_shares(id.y, wire, first, choice(logits[row], first, CANDIDATES), is_drawn(wire / 2u, epoch, key));
        }
        return;
    }
    let to = (id.y * shape.gates + id.x) * record();
    let stuck = stuck_gate(key, id.x);
    let made = choice(logits[row], 0u, GATES);
    if stuck > 0u {
        coefficients[to] = vec4<f32>(f32(stuck - 1u), 0.0, 0.0, 0.0);
    } else if is_drawn(id.x, epoch, key) {
        coefficients[to] = gate_coefficients(made.best);
    } else {
        coefficients[to] = mixture(made.share);
    }
}
