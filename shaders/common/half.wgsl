// Node values in 16 bits, for the backward pass: 16 cells of a node share a range, and a value's code counts from the
// end of it that is nearer, in steps that grow with the distance. Twin: difflogic/reference/kernels/half.py
// In a buffer, all codes come first, two to a word and eight words to a chunk; a word for each range follows.
// Needs `shape`, `values`.

// 1: the forward pass keeps every node's value for the backward pass. 0: that computes them again.
override KEEP: u32 = 1u;
// 1: the backward pass sees node values in 16 bits, and so they are kept.
override HALF: u32 = 0u;

const TOP = 65535u;

struct Half {
    codes: array<vec2<u32>, 4>,
    range: u32,  // the least value, rounded down, and the largest, rounded up, less 1 and shifted: in 65536ths
}

// How many words of codes precede the ranges.
fn code_words() -> u32 {
    return shape.models * shape.chunks * shape.nodes * 8u;
}

fn real_cells(chunk: u32) -> u32 {
    return min(CELLS_PER_CHUNK, max(shape.cells, chunk * CELLS_PER_CHUNK) - chunk * CELLS_PER_CHUNK);
}

fn numbers(quarter: u32) -> vec4<u32> {
    return vec4<u32>(0u, 1u, 2u, 3u) + 4u * quarter;
}

// `count`: how many of the cells are real.
fn encode(values: Chunk, count: u32) -> Half {
    var low = vec4<f32>(65535.0);
    var high = vec4<f32>();
    for (var j = 0u; j < 4u; j++) {
        let units = clamp(values[j], vec4<f32>(), vec4<f32>(1.0)) * 65536.0;
        let real = numbers(j) < vec4<u32>(count);
        low = select(low, min(low, units), real);
        high = select(high, max(high, units), real);
    }
    let least = floor(min(min(low.x, low.y), min(low.z, low.w)));
    let largest = max(ceil(max(max(high.x, high.y), max(high.z, high.w))), least + 1.0);
    let scale = 0.5 / (largest - least);
    var codes: array<vec2<u32>, 4>;
    for (var j = 0u; j < 4u; j++) {
        let units = clamp(clamp(values[j], vec4<f32>(), vec4<f32>(1.0)) * 65536.0, vec4<f32>(least), vec4<f32>(largest));
        let up = units - least;
        let down = largest - units;
        let steps = vec4<u32>(sqrt(min(up, down) * scale) * 65535.0 + 0.5);
        let each = select(TOP - steps, steps, up <= down);
        codes[j] = each.xz | (each.yw << vec2<u32>(16u));
    }
    return Half(codes, u32(least) | (u32(largest - 1.0) << 16u));
}

// Four cells; in integers, so that a value is the same wherever it is decoded.
fn decode(codes: vec2<u32>, range: u32) -> vec4<f32> {
    let each = vec4<u32>(codes.x & TOP, codes.x >> 16u, codes.y & TOP, codes.y >> 16u);
    let least = range & TOP;
    let largest = (range >> 16u) + 1u;
    let steps = min(each, TOP - each);
    let square = steps * steps + ((steps * steps) >> vec4<u32>(15u));
    let width = largest - least;
    let way = width * (square >> vec4<u32>(16u)) + ((width * (square & vec4<u32>(TOP))) >> vec4<u32>(16u));
    return vec4<f32>(select((largest << 15u) - way, (least << 15u) + way, each == steps)) * 0x1p-31;
}

// Values that were computed again become what the forward pass would have kept.
fn halve(chunk: u32, base: u32, thread: u32) {
    for (var node = worker(thread) * LANES; node < shape.nodes * LANES; node += workers() * LANES) {
        let half = encode(values[base + node], real_cells(chunk));
        for (var j = 0u; j < 4u; j++) { values[base + node][j] = decode(half.codes[j], half.range); }
    }
    chunk_barrier();
}
