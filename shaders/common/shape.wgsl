// Sizes of the work, one uniform for all kernels; difflogic/gpu/uniforms.py fills it by the names of its fields.
//
// Cells are numbered (b*H + row)*W + col. A chunk is 16 consecutive cells, which one invocation processes
// together; the last chunks may contain cells past the end, which are 0 and add nothing.
// A hard state packs 32 samples into each word. For hard kernels a "cell" is such a word, and `batch`
// counts groups of 32 samples: first those of the evaluation grids, then those of the training batch.
#import common/linear.wgsl
#import common/grid.wgsl

alias Chunk = array<vec4<f32>, 4>;
alias WordChunk = array<vec4<u32>, 4>;

struct Shape {
    batch: u32, height: u32, width: u32, channels: u32,
    cells: u32, chunks: u32, steps: u32, periodic: u32,
    patch_nodes: u32, nodes: u32, instances: u32, gates: u32,
    levels: u32, slots: u32, loss_channels: u32, asynchronous: u32,
    blocks: u32, chunks_per_block: u32, history: u32,
    grid: u32, probe_groups: u32, fire_rate: f32, lr: f32,
    weight_decay: f32, beta1: f32, beta2: f32, epsilon: f32,
    clip: f32, models: u32, harden_first: u32,
    harden_length: u32, harden_peak: u32, judged: u32, damages: u32,
    damage_side: u32, corner_samples: u32, pool: u32, grid_words: u32,
    resets: u32, lr_from: u32, lr_to: u32, lr_end: f32,
    tree_levels: u32, inner: u32, outputs: u32, targets: u32,
    dataset: u32, given: u32, flip: u32, stuck: u32,
    stuck_gates: u32, stuck_value: u32, input_wise: u32, near_odd: u32,
    adjoints: u32,
    level_table: array<vec4<u32>, 256>,  // first_instance, count, first_gate, replicas
}

// CA step and range that a dispatch of a fused step computes: tiles [first, end) of all models and, if tiles consist
// of blocks, chunks [first_part, end_part) of each. Adjoints of patches are bound from chunk `window` on.
struct StepRange { step: u32, first: u32, end: u32, first_part: u32, end_part: u32, window: u32 }

// Step of a state, and its indices in the lists of damaged and evaluated states, if any.
struct EventIndex { damage: u32, judged: u32, step: u32 }

// Gate of an instance in a level; the replicas of a gate, one per channel or only one, are consecutive.
fn gate_of(level: vec4<u32>, instance: u32) -> u32 {
    let i = instance - level.x;
    return level.z + select(i / shape.channels, i, level.w == 1u);  // a card knows the channels when it compiles
}

// End of a loop that must not be unrolled: a model always exists, which compilers cannot know. Software drivers would
// unroll the loop, and LLVM would take 19 s for `gate_backward` instead of 9.
fn rolled(end: u32) -> u32 {
    return select(end, 0u, shape.models == 0u);
}

const PATCH = 9u;
const CENTRE = 4u;
const CELLS_PER_CHUNK = 16u;
const GATES = 16u;
const WORD = 32u;
