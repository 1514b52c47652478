// Flip bits and apply stuck cells in a hard state before a step, sample by sample.
// Reference: difflogic/reference/kernels/hard_faults.py
// Dispatch: x = ceil(words / WG), at most 65535, then invocations loop; y = model.
// Shapes, per model: fault_keys [2]; listed [H*W], of all models; words [chunks, C, 16].
#import common/shape.wgsl
#import common/state_faults.wgsl

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<uniform> mark: EventIndex;
@group(0) @binding(2) var<storage, read> fault_keys: array<vec2<u32>>;
@group(0) @binding(3) var<storage, read> listed: array<u32>;
@group(0) @binding(4) var<storage, read_write> words: array<u32>;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) workgroups: vec3<u32>) {
    for (var item = id.x; item < shape.cells * shape.channels; item += workgroups.x * WG) {
        let word = item / shape.channels;
        let channel = item % shape.channels;
        // The groups of evaluation grids come first; the batch's samples are numbered from 0 again.
        let whose = select(OF_PROBES, OF_BATCH, word / shape.grid >= shape.probe_groups);
        if whose == OF_BATCH && mark.step == 0u { continue; }  // as the soft pass left it
        let first = (word / shape.grid - whose * shape.probe_groups) * WORD;
        let keys = keys_of(id.y, whose);
        var flipped = 0u;
        var zeros = 0u;
        var ones = 0u;
        for (var bit = 0u; bit < WORD; bit++) {
            let cell = (first + bit) * shape.grid + word % shape.grid;
            let fault = fault_of(keys, cell * shape.channels + channel, mark.step);
            flipped |= u32(fault == FLIPPED) << bit;
            zeros |= u32(fault == 1u) << bit;
            ones |= u32(fault == 2u) << bit;
        }
        let at = state_index(id.y, word, channel);
        words[at] = ((words[at] ^ flipped) & ~zeros) | ones;
    }
}
