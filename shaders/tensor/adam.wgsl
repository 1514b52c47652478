// Adam step, with gradients scaled down if their global norm exceeds max_norm.
//
//     g = g * min(1, max_norm / sqrt(square))    mu = b1*mu + (1-b1)*g    nu = b2*nu + (1-b2)*g*g
//     p -= rate * (mu/(1-b1^t)) / (sqrt(nu/(1-b2^t)) + eps)
// Reference: difflogic/tensor/kernels/adam.py
// Dispatch: x = ceil(entries / WG), at most 65535, then invocations loop.
// Shapes: rate, count (the step t, from 1), square (the sum of all gradients' squares) [1]; gradient, parameter, mu,
//     nu [entries].
#import common/linear.wgsl
#import common/power.wgsl

struct Hyper { entries: u32, beta1: f32, beta2: f32, epsilon: f32, max_norm: f32 }

@group(0) @binding(0) var<uniform> hyper: Hyper;
@group(0) @binding(1) var<storage, read> rate: array<f32>;
@group(0) @binding(2) var<storage, read> count: array<f32>;
@group(0) @binding(3) var<storage, read> square: array<f32>;
@group(0) @binding(4) var<storage, read> gradient: array<f32>;
@group(0) @binding(5) var<storage, read_write> parameter: array<f32>;
@group(0) @binding(6) var<storage, read_write> mu: array<f32>;
@group(0) @binding(7) var<storage, read_write> nu: array<f32>;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) workgroups: vec3<u32>) {
    let norm = sqrt(square[0]);
    let scale = select(1.0, hyper.max_norm / norm, norm > hyper.max_norm);
    let mu_scale = 1.0 - power(hyper.beta1, u32(count[0]));
    let nu_scale = 1.0 - power(hyper.beta2, u32(count[0]));
    for (var i = id.x; i < hyper.entries; i += workgroups.x * WG) {
        let g = scale * gradient[i];
        let m = hyper.beta1 * mu[i] + (1.0 - hyper.beta1) * g;
        let n = hyper.beta2 * nu[i] + (1.0 - hyper.beta2) * g * g;
        mu[i] = m;
        nu[i] = n;
        parameter[i] -= rate[0] * (m / mu_scale) / (sqrt(n / nu_scale) + hyper.epsilon);
    }
}
