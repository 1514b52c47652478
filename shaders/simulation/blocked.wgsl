// Several generations of a hard circuit on one large grid, in one dispatch: before -> after.
// Reference: difflogic/reference/simulation.py
// Dispatch: x = ceil(words / 30), y = ceil(height / (ROWS - 2 * MARGIN)); at.step generations, at most MARGIN.
// Shapes: before, after [H, C, words].
// A workgroup loads a tile of ROWS rows by 32 words. It computes each generation from one half of its memory into the
// other, which makes one more row or column of cells on every side invalid, and stores the inner part. An invocation
// computes STRIP rows of a column of words, from top to bottom, with a window of three rows in registers.
// The circuit is the function `advance`, which difflogic/gpu/simulation.py generates with a statement per gate and row.
#import simulation/grid.wgsl

override WG: u32 = 256u;
override ROWS: u32 = 64u;
override STRIP: u32 = 8u;
override MARGIN: u32 = 8u;
override CHANNELS: u32 = 1u;
override TILE: u32 = 4096u;  // words in the two halves of the workgroup memory

const COLUMNS = 32u;

@group(0) @binding(2) var<storage, read> before: array<u32>;
@group(0) @binding(3) var<storage, read_write> after: array<u32>;

var<workgroup> tile: array<u32, TILE>;

// Column of a tile with its neighbours, and positions of its first row and its word in the tile and in the grid.
struct Strip { x: u32, left: u32, right: u32, y: u32, row: i32, word: i32 }

fn in_tile(row: u32, channel: u32) -> u32 {
    return (row * CHANNELS + channel) * COLUMNS;
}

fn wrapped(i: i32, length: u32) -> u32 {
    let rest = i % i32(length);
    return u32(select(rest, rest + i32(length), rest < 0));
}

// Up to 32 cells of a row from `column` on, out of two adjacent words.
fn cells_from(first: u32, column: u32) -> u32 {
    let word = column / 32u;
    let bit = column % 32u;
    let low = before[first + word] >> bit;
    if bit == 0u || word == last_word() { return low; }
    return low | (before[first + word + 1u] << (32u - bit));
}

// Mask of the cells of a word that are in the grid.
fn inside(row: i32, word: i32) -> u32 {
    if row < 0 || row >= i32(spec.height) || word < 0 || word > i32(last_word()) { return 0u; }
    return select(0xffffffffu, 0xffffffffu >> (31u - last_column()), word == i32(last_word()));
}

// 32 cells of the plane: a torus is repeated, whatever its width; otherwise cells outside the grid are 0.
fn plane_word(row: i32, channel: u32, word: i32) -> u32 {
    if spec.periodic == 0u {
        if inside(row, word) == 0u { return 0u; }
        return before[index_of(u32(row), channel, u32(word))];
    }
    let first = index_of(wrapped(row, spec.height), channel, 0u);
    var column = wrapped(32 * word, spec.width);
    if column + 32u <= spec.width { return cells_from(first, column); }
    var cells = 0u;
    for (var count = 0u; count < 32u;) {
        let more = min(spec.width - column, 32u - count);
        cells |= extractBits(cells_from(first, column), 0u, more) << count;
        count += more;
        column = 0u;
    }
    return cells;
}

// Cells to the left or right of those in `here`, a word of the strip's column at `row` in the tile.
fn left_of(here: u32, row: u32, s: Strip) -> u32 {
    return (here << 1u) | (tile[row + s.left] >> 31u);
}

fn right_of(here: u32, row: u32, s: Strip) -> u32 {
    return (here >> 1u) | (tile[row + s.right] << 31u);
}

#import simulation/generations.wgsl

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let x = thread % COLUMNS;
    let y = thread / COLUMNS * STRIP;
    let row = i32(group.y * (ROWS - 2u * MARGIN) + y) - i32(MARGIN);
    let word = i32(group.x * (COLUMNS - 2u) + x) - 1;
    let s = Strip(x, (x + COLUMNS - 1u) % COLUMNS, (x + 1u) % COLUMNS, y, row, word);
    for (var i = 0u; i < STRIP; i++) {
        for (var c = 0u; c < CHANNELS; c++) { tile[in_tile(y + i, c) + x] = plane_word(row + i32(i), c, word); }
    }
    advance(s);
    if x == 0u || x == COLUMNS - 1u || word > i32(last_word()) { return; }
    let half = at.step % 2u * (TILE / 2u);
    for (var i = max(y, MARGIN) - y; i < STRIP && y + i < ROWS - MARGIN; i++) {
        let here = row + i32(i);
        if here >= i32(spec.height) { return; }
        for (var c = 0u; c < CHANNELS; c++) {
            after[index_of(u32(here), c, u32(word))] = tile[half + in_tile(y + i, c) + x] & inside(here, word);
        }
    }
}
