// Arrays of up to eight axes read through strides: 0 repeats an entry along an axis.

struct Strided {
    count: u32,
    rank: u32,
    sizes: array<vec4<u32>, 2>,
    a_strides: array<vec4<u32>, 2>,
    b_strides: array<vec4<u32>, 2>,
}

// Where the entries lie that belong to entry i of the result, of one operand and of the other.
fn places(i: u32) -> vec2<u32> {
    var rest = i;
    var place = vec2<u32>();
    for (var axis = shape.rank; axis > 0u; axis--) {
        let group = (axis - 1u) / 4u;
        let member = (axis - 1u) % 4u;
        let size = shape.sizes[group][member];
        let at = rest % size;
        rest /= size;
        place += at * vec2<u32>(shape.a_strides[group][member], shape.b_strides[group][member]);
    }
    return place;
}
