// Sample a batch from a data set: the first channels of its initial states, and its targets.
//
//     sub = split(data_key)[1]    sample = random_bits(fold_in(sub, "samp")) * N >> 32
// Reference: difflogic/reference/kernels/draw_samples.py
// Dispatch: x = ceil(words / WG), at most 65535, then invocations loop; y = model.
// Shapes, per model: control [8]; state [chunks, C, 16]; targets [J, chunks, loss_channels, 16]. For all models, in
//     words of 32 values: x [N, ceil(H*W*C_in / 32)]; y [N, ceil(J*H*W*loss_channels / 32)] of (values, which count).
#import common/shape.wgsl
#import common/targets.wgsl
#import common/keys.wgsl

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<storage, read> control: array<u32>;
@group(0) @binding(2) var<storage, read> x: array<u32>;
@group(0) @binding(3) var<storage, read> y: array<vec2<u32>>;
@group(0) @binding(4) var<storage, read_write> state: array<f32>;
@group(0) @binding(5) var<storage, read_write> targets: array<f32>;

const STREAM = 0x73616d70u;

fn begin(model: u32, sample: u32, first: u32, word: u32) {
    for (var value = first; value < min(first + WORD, shape.grid * shape.given); value++) {
        let cell = sample * shape.grid + value / shape.given;
        state[state_index(model, cell, value % shape.given)] = f32((word >> (value - first)) & 1u);
    }
}

fn ask(model: u32, sample: u32, first: u32, word: vec2<u32>) {
    let each = shape.grid * shape.loss_channels;
    for (var value = first; value < min(first + WORD, shape.targets * each); value++) {
        let cell = sample * shape.grid + value % each / shape.loss_channels;
        let bits = (word >> vec2<u32>(value - first)) & vec2<u32>(1u);
        let index = target_index(model, value / each, cell, value % shape.loss_channels);
        targets[index] = select(IGNORED, f32(bits.x), bits.y == 1u);
    }
}

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) workgroups: vec3<u32>) {
    let key = fold_in(subkey(id.y, DATA_KEY), STREAM);
    let x_words = (shape.grid * shape.given + WORD - 1u) / WORD;
    let y_words = (shape.grid * shape.targets * shape.loss_channels + WORD - 1u) / WORD;
    for (var item = id.x; item < shape.batch * (x_words + y_words); item += workgroups.x * WG) {
        let sample = item / (x_words + y_words);
        let word = item % (x_words + y_words);
        let drawn = random_below(shape.dataset, key, sample, shape.batch);
        if word < x_words {
            begin(id.y, sample, word * WORD, x[drawn * x_words + word]);
        } else {
            ask(id.y, sample, (word - x_words) * WORD, y[drawn * y_words + word - x_words]);
        }
    }
}
