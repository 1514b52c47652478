// The sixteen gates. A gate's id is its truth table: the bits, most significant first, are the
// outputs for 00, 01, 10, 11. Defined in difflogic/core/gates.py

// c0, ca, cb, cab of `c0 + ca*a + cb*b + cab*a*b`
fn gate_coefficients(id: u32) -> vec4<f32> {
    let f = vec4<f32>(vec4<u32>(id >> 3u, id >> 2u, id >> 1u, id) & vec4<u32>(1u));
    return vec4<f32>(f.x, f.z - f.x, f.y - f.x, f.w - f.z - f.y + f.x);
}

struct Choice { share: array<f32, 16>, best: u32 }

// Softmax of the logits [first, first + count), and the index of the largest logit; of equal logits, the first.
fn choice(logits: array<f32, 16>, first: u32, count: u32) -> Choice {
    var shares = logits;
    var best = first;
    var largest = shares[first];
    for (var i = first; i < first + count; i++) {
        if shares[i] > largest { best = i; }
        largest = max(largest, shares[i]);
    }
    var sum = 0.0;
    // The largest logit is subtracted, so that no exponential overflows.
    for (var i = first; i < first + count; i++) {
        shares[i] = exp(shares[i] - largest);
        sum += shares[i];
    }
    for (var i = first; i < first + count; i++) { shares[i] /= sum; }
    return Choice(shares, best - first);
}

fn mixture(shares: array<f32, 16>) -> vec4<f32> {
    var share = shares;
    var mixed = vec4<f32>();
    for (var i = 0u; i < GATES; i++) { mixed += share[i] * gate_coefficients(i); }
    return mixed;
}
