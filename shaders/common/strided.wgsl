// Arrays of up to eight axes read through strides, four entries at once. A stride of 0 repeats an entry along an axis.
//
// FOURS: along the last axis each operand has stride 1, in complete fours, or stride 0 under REPEAT_A or REPEAT_B. The
// last size then counts fours, and so do the other strides of an operand with stride 1. Without FOURS, each entry is
// looked up separately. Needs `shape` and the operands `a` and `b`.
#import common/linear.wgsl

struct Strided {
    fours: u32,  // of the result
    rank: u32,
    sizes: array<vec4<u32>, 2>,
    a_strides: array<vec4<u32>, 2>,
    b_strides: array<vec4<u32>, 2>,
}

override FOURS: bool;
override REPEAT_A: bool;
override REPEAT_B: bool;

// Indices in both operands of the entries for place i of the result.
fn places(i: u32) -> vec2<u32> {
    var rest = i;
    var place = vec2<u32>();
    for (var axis = shape.rank; axis > 1u; axis--) {
        let size = shape.sizes[(axis - 1u) / 4u][(axis - 1u) % 4u];
        place += rest % size * strides(axis - 1u);
        rest /= size;
    }
    // The remainder is the place along the first axis, so that an array of one axis needs no division.
    return place + rest * strides(0u);
}

fn strides(axis: u32) -> vec2<u32> {
    return vec2(shape.a_strides[axis / 4u][axis % 4u], shape.b_strides[axis / 4u][axis % 4u]);
}

struct Operands { a: vec4<f32>, b: vec4<f32> }

fn entry_of_a(place: u32) -> f32 { return a[place / 4u][place % 4u]; }
fn entry_of_b(place: u32) -> f32 { return b[place / 4u][place % 4u]; }

// Four entries of each operand, for the i-th four of the result.
fn operands(i: u32) -> Operands {
    var fours = Operands();
    if FOURS {
        let place = places(i);
        if REPEAT_A { fours.a = vec4(entry_of_a(place.x)); } else { fours.a = a[place.x]; }
        if REPEAT_B { fours.b = vec4(entry_of_b(place.y)); } else { fours.b = b[place.y]; }
        return fours;
    }
    for (var k = 0u; k < 4u; k++) {
        let place = places(4u * i + k);
        fours.a[k] = entry_of_a(place.x);
        fours.b[k] = entry_of_b(place.y);
    }
    return fours;
}
