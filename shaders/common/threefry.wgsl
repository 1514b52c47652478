// threefry2x32, twenty rounds, in JAX's original stream. Reference: difflogic/core/prng.py

const ROTATIONS_OF_EVEN = vec4<u32>(13u, 15u, 26u, 6u);
const ROTATIONS_OF_ODD = vec4<u32>(17u, 29u, 16u, 24u);

fn rotate_left(x: u32, distance: u32) -> u32 {
    return (x << distance) | (x >> (32u - distance));
}

fn four_rounds(block: vec2<u32>, rotations: vec4<u32>) -> vec2<u32> {
    var x = block;
    for (var round = 0u; round < 4u; round++) {
        x.x += x.y;
        x.y = x.x ^ rotate_left(x.y, rotations[round]);
    }
    return x;
}

fn threefry(key: vec2<u32>, counter: vec2<u32>) -> vec2<u32> {
    let schedule = vec3<u32>(key, key.x ^ key.y ^ 0x1bd11bdau);
    var x = counter + schedule.xy;
    for (var group = 0u; group < 5u; group++) {
        x = four_rounds(x, select(ROTATIONS_OF_ODD, ROTATIONS_OF_EVEN, group % 2u == 0u));
        x += vec2<u32>(schedule[(group + 1u) % 3u], schedule[(group + 2u) % 3u] + group + 1u);
    }
    return x;
}

// split(key): the words of counters 0..3 are (x, x, y, y) of the blocks (0, 2) and (1, 3).
fn split_first(key: vec2<u32>) -> vec2<u32> {
    return vec2<u32>(threefry(key, vec2<u32>(0u, 2u)).x, threefry(key, vec2<u32>(1u, 3u)).x);
}

fn split_second(key: vec2<u32>) -> vec2<u32> {
    return vec2<u32>(threefry(key, vec2<u32>(0u, 2u)).y, threefry(key, vec2<u32>(1u, 3u)).y);
}

// Words i and i + half of random_bits(key, count), half = ceil(count / 2); an odd count is padded
// with counter 0.
fn random_pair(key: vec2<u32>, i: u32, count: u32) -> vec2<u32> {
    let second = i + (count + 1u) / 2u;
    return threefry(key, vec2<u32>(i, select(0u, second, second < count)));
}

// Word i of random_bits(key, count). Five words: the counters 0 1 2 3 4 and a 0 make the pairs (0, 3), (1, 4), (2, 0),
// whose six words are 0, 3, 1, 4, 2 and one that is dropped.
fn random_word(key: vec2<u32>, i: u32, count: u32) -> u32 {
    let half = (count + 1u) / 2u;
    let words = random_pair(key, i % half, count);
    return select(words.y, words.x, i < half);
}

// Word i as a number below `end`: the high word of their product, computed from 16-bit parts without overflow.
fn random_below(end: u32, key: vec2<u32>, i: u32, count: u32) -> u32 {
    let word = random_word(key, i, count);
    let middle = (word >> 16u) * (end & 0xffffu) + (((word & 0xffffu) * (end & 0xffffu)) >> 16u);
    let other = (word & 0xffffu) * (end >> 16u) + (middle & 0xffffu);
    return (word >> 16u) * (end >> 16u) + (middle >> 16u) + (other >> 16u);
}

fn fold_in(key: vec2<u32>, data: u32) -> vec2<u32> {
    return threefry(key, vec2<u32>(0u, data));
}
