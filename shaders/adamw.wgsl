// Clip by element, update the logits with AdamW, and compute the coefficients and hard gates of the new logits.
//
//     g = clip(g)    mu = b1*mu + (1-b1)*g    nu = b2*nu + (1-b2)*g*g
//     p -= lr_e * (mu/(1-b1^t) / (sqrt(nu/(1-b2^t)) + eps) + decay*p)
//     lr_e = lr * (1 - (1 - lr_end) * min(max(e - from, 0), length) / length), length = to - from
// An input-wise gate is trained by four numbers (each with g, mu, nu), one per row of its truth table. A logit is a sum
// of these: half of number r is added if the logit's gate function is 1 in row r, otherwise subtracted.
// Reference: difflogic/reference/kernels/adamw.py
// Dispatch: x = ceil(parameter rows / WG); y = model.
// Shapes, per model: control [8]; gradients, logits, mu, nu [parameter rows, 16]; coefficients, gate_ids as in
//     coefficients.wgsl.
#import common/shape.wgsl
#import common/gates.wgsl
#import common/control.wgsl
#import common/parameters.wgsl
#import common/power.wgsl

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<storage, read> control: array<u32>;
@group(0) @binding(2) var<storage, read> gradients: array<array<f32, 16>>;
@group(0) @binding(3) var<storage, read_write> logits: array<array<f32, 16>>;
@group(0) @binding(4) var<storage, read_write> mu: array<array<f32, 16>>;
@group(0) @binding(5) var<storage, read_write> nu: array<array<f32, 16>>;
@group(0) @binding(6) var<storage, read_write> coefficients: array<vec4<f32>>;
@group(0) @binding(7) var<storage, read_write> gate_ids: array<u32>;

// Learning rate of the epoch, which `commit` has already counted.
fn learning_rate(epoch: u32) -> f32 {
    let length = max(shape.lr_to, shape.lr_from + 1u) - shape.lr_from;
    let fallen = min(max(epoch, shape.lr_from) - shape.lr_from, length);
    return shape.lr * (1.0 - (1.0 - shape.lr_end) * (f32(fallen) / f32(length)));
}

fn share_of_row(id: u32, row: u32) -> f32 {
    return f32((id >> (3u - row)) & 1u) - 0.5;
}

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let words = id.y * CONTROL_WORDS;
    if id.x >= parameter_rows() || control[words + NONFINITE] != 0u { return; }
    let row = id.y * parameter_rows() + id.x;
    let mu_scale = 1.0 - power(shape.beta1, control[words + STEP]);
    let nu_scale = 1.0 - power(shape.beta2, control[words + STEP]);
    let lr = learning_rate(control[words + EPOCH]);
    let input_wise = shape.input_wise != 0u && id.x < shape.gates;
    var directions = array<f32, 16>();
    for (var i = 0u; i < rolled(select(GATES, 4u, input_wise)); i++) {
        var g = gradients[row][i];
        if input_wise {
            g = 0.0;
            for (var id = 0u; id < rolled(GATES); id++) { g += gradients[row][id] * share_of_row(id, i); }
        }
        g = clamp(g, -shape.clip, shape.clip);
        let m = shape.beta1 * mu[row][i] + (1.0 - shape.beta1) * g;
        let n = shape.beta2 * nu[row][i] + (1.0 - shape.beta2) * g * g;
        mu[row][i] = m;
        nu[row][i] = n;
        let direction = (m / mu_scale) / (sqrt(n / nu_scale) + shape.epsilon);
        if input_wise {
            for (var id = 0u; id < rolled(GATES); id++) { directions[id] += direction * share_of_row(id, i); }
        } else {
            directions[i] = direction;
        }
    }
    for (var i = 0u; i < rolled(GATES); i++) {
        let p = logits[row][i];
        logits[row][i] = p - lr * (directions[i] + shape.weight_decay * p);
    }
    put_parameters(id.y, id.x, logits[row]);
}
