// One CA step of the hard circuit, 32 samples per word: words -> next_words.
//
//     node = c0 ^ ca&a ^ cb&b ^ cab&a&b    c: coefficients of the soft gate modulo 2, as words, from the gate's id
// Reference: difflogic/reference/kernels/hard_forward.py
// Dispatch: x = at most models * chunks / LANES workgroups, which loop; under SPLIT two or four times as many.
// Shapes, per model: wires [instances, CANDIDATES] (a, b), under SPLIT indices in `near`; gate_ids as in
//     coefficients.wgsl; masks [T, H*W];
//     words, next_words [chunks, C, 16]; values [workgroups, nodes, LANES], scratch.
#import common/shape.wgsl

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<uniform> at: StepRange;
@group(0) @binding(2) var<storage, read> wires: array<vec2<u32>>;
@group(0) @binding(3) var<storage, read> gate_ids: array<u32>;
@group(0) @binding(4) var<storage, read> masks: array<f32>;
@group(0) @binding(5) var<storage, read> words: array<u32>;
@group(0) @binding(6) var<storage, read_write> next_words: array<u32>;
@group(0) @binding(7) var<storage, read_write> values: array<WordChunk>;

alias One = u32;
alias Four = vec4<u32>;

#import common/forward.wgsl

// Many GPUs have an instruction for any bitwise function of three words; this form needs three of these.
fn gate(c: vec4<u32>, a: vec4<u32>, b: vec4<u32>) -> vec4<u32> {
    return c.xxxx ^ (c.yyyy & a) ^ ((c.zzzz ^ (c.wwww & a)) & b);
}

// Coefficients from the outputs for 00, 01, 10, 11, bits 3 to 0 of the id, as words of equal bits: 0 - 1 is all ones.
fn form_of(model: u32, id: u32) -> vec4<u32> {
    let f = gate_ids[id_at(model, id)];
    let bits = vec4<u32>(f >> 3u, (f >> 3u) ^ (f >> 1u), (f >> 3u) ^ (f >> 2u), countOneBits(f));
    return vec4<u32>() - (bits & vec4<u32>(1u));
}

// An input with candidates is its chosen candidate.
fn mixed(model: u32, gate: u32, place: u32, side: u32, base: u32, quarter: u32) -> vec4<u32> {
    let chosen = gate_ids[id_at(model, shape.gates + 2u * gate + side)];
    return stored(candidate(model, place, chosen)[side], shape.nodes, base, quarter);
}

// Functions that the imported files need.
fn writes_nodes() -> bool { return false; }
fn state_value(index: u32) -> u32 { return words[index]; }
fn put_next(index: u32, value: u32) { next_words[index] = value; }
