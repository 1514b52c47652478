// One step of a hard circuit on one large grid, 32 cells per word: before -> after.
// Reference: difflogic/reference/simulation.py
// Dispatch: x = ceil(words / WG) workgroups, y = rows, at most 65535, then invocations loop.
// Shapes: before, after [H, C, words], masks [H, words]; program, nodes: see interpreted.wgsl.
// The circuit is the function `next_words`: interpreted, or generated with one statement per gate.
#import common/threefry.wgsl
#import simulation/grid.wgsl
#import simulation/interpreted.wgsl

const GIVEN = 2u;
const CERTAIN = 65536u;

override WG: u32 = 64u;

@group(0) @binding(2) var<storage, read> program: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> masks: array<u32>;
@group(0) @binding(4) var<storage, read> before: array<u32>;
@group(0) @binding(5) var<storage, read_write> after: array<u32>;
@group(0) @binding(6) var<storage, read_write> nodes: array<u32>;

struct Place { row: u32, word: u32, worker: u32, workers: u32 }

// 32 cells of a channel, `dy` rows below and `dx` columns to the right; 0 outside a zero boundary.
fn patch_word(place: Place, channel: u32, dy: i32, dx: i32) -> u32 {
    var row = i32(place.row) + dy;
    if row < 0 || row >= i32(spec.height) {
        if spec.periodic == 0u { return 0u; }
        row += select(-i32(spec.height), i32(spec.height), row < 0);
    }
    let start = index_of(u32(row), channel, 0u);
    let here = before[start + place.word];
    if dx == 0 { return here; }
    if dx < 0 {
        if place.word > 0u { return (here << 1u) | (before[start + place.word - 1u] >> 31u); }
        return (here << 1u) | ((before[start + last_word()] >> last_column()) & spec.periodic);
    }
    if place.word < last_word() { return (here >> 1u) | (before[start + place.word + 1u] << 31u); }
    return (here >> 1u) | ((before[start] & spec.periodic) << last_column());
}

fn fires(place: Place) -> u32 {
    if spec.mode == GIVEN { return masks[place.row * spec.words + place.word]; }
    if spec.fire_units == CERTAIN { return 0xffffffffu; }
    let key = threefry(spec.key, vec2<u32>(0u, spec.first_step + at.step));
    let counter = (place.row * spec.words + place.word) / 2u;
    let lowest = countTrailingZeros(spec.fire_units);
    var block = threefry(key, vec2<u32>(counter, lowest));
    var less = block[place.word % 2u];
    for (var k = lowest + 1u; k < 16u; k++) {
        block = four_rounds(block, ROTATIONS_OF_ODD);
        let coin = block[place.word % 2u];
        less = select(coin & less, coin | less, ((spec.fire_units >> k) & 1u) == 1u);
    }
    return less;
}

fn write_word(place: Place, channel: u32, value: u32, fire: u32) {
    let index = index_of(place.row, channel, place.word);
    let kept = before[index];
    var cells = kept ^ ((kept ^ value) & fire);
    if place.word >= last_word() {
        cells &= select(0u, 0xffffffffu >> (31u - last_column()), place.word == last_word());
    }
    after[index] = cells;
}

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) item: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    if item.x >= spec.words { return; }
    for (var row = item.y; row < spec.height; row += groups.y) {
        let place = Place(row, item.x, item.y * spec.words + item.x, groups.y * spec.words);
        var fire = 0xffffffffu;
        if spec.mode != 0u { fire = fires(place); }
        next_words(place, fire);
    }
}
