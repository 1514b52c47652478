// One CA step of the soft circuit, all levels fused: state -> next_state.
//
//     node = c0 + ca*a + cb*b + cab*a*b
// Reference: difflogic/reference/kernels/gate_forward.py
// Dispatch: x = at most models * chunks / LANES workgroups, which loop; under SPLIT two or four times as many.
// Shapes, per model: wires [instances, CANDIDATES] (a, b), under SPLIT indices in `near`; coefficients [gates, record];
//     masks [T, H*W]; state [chunks, C, 16]; next_state [chunks, outputs, 16]; values [chunks / LANES, nodes, LANES] if
//     nodes are stored for the backward pass, else [workgroups, nodes, LANES], scratch.
#import common/shape.wgsl

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<uniform> at: StepRange;
@group(0) @binding(2) var<storage, read> wires: array<vec2<u32>>;
@group(0) @binding(3) var<storage, read> coefficients: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> masks: array<f32>;
@group(0) @binding(5) var<storage, read> state: array<f32>;
@group(0) @binding(6) var<storage, read_write> next_state: array<f32>;
@group(0) @binding(7) var<storage, read_write> values: array<Chunk>;

#import common/soft.wgsl
#import common/forward.wgsl

// Functions that the imported files need.
fn node_value(node: u32, base: u32, quarter: u32) -> Four { return stored(node, shape.nodes, base, quarter); }
fn writes_nodes() -> bool { return KEEP == 1u; }
fn state_value(index: u32) -> f32 { return state[index]; }
fn put_next(index: u32, value: f32) { next_state[index] = value; }
