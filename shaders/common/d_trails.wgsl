// Gates backward, along trails: where input b of a gate is input a of the next, what both read is loaded once and gets
// its adjoint whole. Which gates follow each other: difflogic/gpu/trails.py
// Needs `shape`, `edges`, `coefficients`, `values`, and the functions `input`, `sum_slots`, `moments`, `add_moments`.

const GATE = 0x3fffffffu;
const ENDS = 0x80000000u;    // the last of its trail
const SINGLE = 0x40000000u;  // its own adjoint is that of one slot

// How many gates of a level one invocation takes in a row.
fn stretch(count: u32) -> u32 {
    return select(1u, count, shape.follows_trails == 1u);
}

struct Quarters { q0: vec4<f32>, q1: vec4<f32>, q2: vec4<f32>, q3: vec4<f32> }

fn inputs(node: u32) -> Quarters {
    return Quarters(input(node, 0u), input(node, 1u), input(node, 2u), input(node, 3u));
}

fn put(slot: u32, d: Quarters) {
    values[slot][0] = d.q0;
    values[slot][1] = d.q1;
    values[slot][2] = d.q2;
    values[slot][3] = d.q3;
}

// A product that no compiler joins with the sum that it goes into: with trails or without, the bits are the same.
fn unfused(product: vec4<f32>) -> vec4<f32> {
    return bitcast<vec4<f32>>(bitcast<vec4<u32>>(product) ^ vec4<u32>(shape.zero));
}

// `d * (own + both * other)`, plus what came before.
fn sent(before: Quarters, d: Chunk, own: f32, both: f32, other: Quarters) -> Quarters {
    return Quarters(
        before.q0 + unfused(d[0] * (own + both * other.q0)), before.q1 + unfused(d[1] * (own + both * other.q1)),
        before.q2 + unfused(d[2] * (own + both * other.q2)), before.q3 + unfused(d[3] * (own + both * other.q3)));
}

// A quarter of the gate in a place, which is a trail of its own; its moments.
fn quarter_adjoints(model: u32, place: u32, quarter: u32, base: u32, slots: u32) -> vec4<f32> {
    let often = edges[edge_index(model, place)].often;
    let seldom = edges[edge_index(model, place)].seldom;
    let c = coefficients[model * shape.gates + (often.w & GATE)];
    let a = input(seldom.x * LANES + base, quarter);
    let b = input(often.x * LANES + base, quarter);
    let d = sum_quarter(vec2<u32>(often.z, seldom.z), slots, quarter);
    values[often.y * LANES + slots][quarter] = vec4<f32>() + unfused(d * (c.y + c.w * b));
    values[seldom.y * LANES + slots][quarter] = vec4<f32>() + unfused(d * (c.z + c.w * a));
    return moments(d, a, b);
}

// The gates in places from `begin` to `end` of a level.
fn trail_adjoints(model: u32, begin: u32, end: u32, base: u32, slots: u32, sums: u32, begins: bool) {
    var place = begin;
    while place < end {
        var a = inputs(edges[edge_index(model, place)].seldom.x * LANES + base);
        var d_a = Quarters();
        var goes_on = true;
        while goes_on {
            let edge = edge_index(model, place);
            let often = edges[edge].often;
            var end_slot = often.z + 1u;
            if (often.w & SINGLE) == 0u { end_slot = edges[edge].seldom.z; }
            let c = coefficients[model * shape.gates + (often.w & GATE)];
            let b = inputs(often.x * LANES + base);
            let d = sum_slots(vec2<u32>(often.z, end_slot), slots);
            put(often.y * LANES + slots, sent(d_a, d, c.y, c.w, b));
            d_a = sent(Quarters(), d, c.z, c.w, a);
            var sum = moments(d[0], a.q0, b.q0);
            sum += moments(d[1], a.q1, b.q1);
            sum += moments(d[2], a.q2, b.q2);
            sum += moments(d[3], a.q3, b.q3);
            add_moments(sums + place, sum, begins);
            a = b;
            place++;
            goes_on = often.w < ENDS;
        }
        put(edges[edge_index(model, place - 1u)].seldom.y * LANES + slots, d_a);
    }
}

fn level_adjoints(model: u32, level: vec4<u32>, base: u32, slots: u32, sums: u32, begins: bool, thread: u32) {
    if quarters() == 1u {
        for (var start = 0u; start < level.y * 4u; start += workers()) {
            let item = start + worker(thread);
            let place = level.x + item / 4u;
            var found = vec4<f32>();
            if item < level.y * 4u { found = quarter_adjoints(model, place, item % 4u, base, slots); }
            let sum = joined(thread, found);
            if item < level.y * 4u && item % 4u == 0u { add_moments(sums + place, sum, begins); }
        }
    } else {
        let each = stretch(level.y);
        for (var i = worker(thread) * each; i < level.y; i += workers() * each) {
            trail_adjoints(model, level.x + i, level.x + i + each, base, slots, sums, begins);
        }
    }
}
