// Test whether a float is finite by its bits, since shader compilers may turn `x != x` into false even for NaN.

fn is_finite(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7f800000u) != 0x7f800000u;
}
