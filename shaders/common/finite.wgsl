// x != x is false for NaN after shader compilers are done with it: look at the bits.

fn is_finite(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7f800000u) != 0x7f800000u;
}
