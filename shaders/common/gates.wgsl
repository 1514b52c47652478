// The sixteen gates. A gate's id is its truth table: the bits, most significant first, are the
// outputs for 00, 01, 10, 11. Defined in difflogic/core/gates.py

// c0, ca, cb, cab of `c0 + ca*a + cb*b + cab*a*b`
fn gate_coefficients(id: u32) -> vec4<f32> {
    let f = vec4<f32>(vec4<u32>(id >> 3u, id >> 2u, id >> 1u, id) & vec4<u32>(1u));
    return vec4<f32>(f.x, f.z - f.x, f.y - f.x, f.w - f.z - f.y + f.x);
}

fn softmax(logits: array<f32, 16>) -> array<f32, 16> {
    var probs = logits;
    var largest = probs[0];
    // The largest logit is subtracted, so that no exponential overflows.
    for (var i = 1u; i < GATES; i++) { largest = max(largest, probs[i]); }
    var sum = 0.0;
    for (var i = 0u; i < GATES; i++) {
        probs[i] = exp(probs[i] - largest);
        sum += probs[i];
    }
    for (var i = 0u; i < GATES; i++) { probs[i] /= sum; }
    return probs;
}

fn mixture(logits: array<f32, 16>) -> vec4<f32> {
    var probs = softmax(logits);
    var mixed = vec4<f32>();
    for (var i = 0u; i < GATES; i++) { mixed += probs[i] * gate_coefficients(i); }
    return mixed;
}

// Ties go to the lowest id.
fn hard_gate(logits: array<f32, 16>) -> u32 {
    var values = logits;
    var best = 0u;
    for (var i = 1u; i < GATES; i++) {
        if values[i] > values[best] { best = i; }
    }
    return best;
}
