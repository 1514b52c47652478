// The gates of a soft step: a form is `c0, ca, cb, cab`. Needs `shape`, `coefficients`.

alias One = f32;
alias Four = vec4<f32>;

fn gate(c: vec4<f32>, a: vec4<f32>, b: vec4<f32>) -> vec4<f32> {
    // Three fused multiply-adds, for four cells at once.
    return c.x + c.y * a + (c.z + c.w * a) * b;
}

fn form_of(model: u32, id: u32) -> vec4<f32> {
    return coefficients[model * shape.gates + id];
}

// 1: the forward pass keeps every node's value for the backward pass. 0: that computes them again.
override KEEP: u32 = 1u;
