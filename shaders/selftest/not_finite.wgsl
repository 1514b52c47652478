// Test that NaNs and infinities are recognised: results[i] becomes 1 if the float with these bits is finite, else 0.
// Dispatch: 1; one invocation per word.
#import common/finite.wgsl

@group(0) @binding(0) var<storage, read_write> results: array<u32>;

@compute @workgroup_size(8)
fn main(@builtin(local_invocation_index) thread: u32) {
    results[thread] = select(0u, 1u, is_finite(bitcast<f32>(results[thread])));
}
