// Grid of a simulation: bit i of word j is column 32*j + i. difflogic/gpu/simulation.py fills the sizes.

struct SimulationSpec {
    height: u32, width: u32, channels: u32, words: u32,
    periodic: u32, mode: u32, fire_units: u32, first_step: u32,
    key: vec2<u32>, patches: u32, gates: u32,
}

struct StepIndex { step: u32 }

@group(0) @binding(0) var<uniform> spec: SimulationSpec;
@group(0) @binding(1) var<uniform> at: StepIndex;

fn last_column() -> u32 {
    return (spec.width - 1u) % 32u;
}

fn last_word() -> u32 {
    return (spec.width - 1u) / 32u;
}

fn index_of(row: u32, channel: u32, word: u32) -> u32 {
    return (row * spec.channels + channel) * spec.words + word;
}
