// a to the power of b as in IEEE arithmetic. WGSL's `pow` accepts no negative a, and its results for 0, infinity and
// NaN are not specified.
#import common/logarithm.wgsl

fn real_power(a: f32, b: f32) -> f32 {
    if b == 2.0 { return a * a; }
    if b == 1.0 { return a; }
    if b == 0.0 || a == 1.0 { return 1.0; }
    let a_size = bitcast<u32>(a) & 0x7fffffffu;
    let b_size = bitcast<u32>(b) & 0x7fffffffu;
    // A variable, since WGSL rejects a constant infinity, and bits, since comparisons with NaN are unreliable.
    var infinite = 0x7f800000u;
    let infinity = bitcast<f32>(infinite);
    let nothing = bitcast<f32>(infinite | 0x00400000u);
    if a_size > infinite || b_size > infinite { return nothing; }
    var size = pow(abs(a), b);
    if a_size == 0u || a_size == infinite || b_size == infinite {
        size = select(0.0, infinity, (a_size > 0x3f800000u) == (b > 0.0));
        if a_size == 0x3f800000u { size = 1.0; }
    } else if a_size < 0x00800000u {
        size = exp(b * logarithm(abs(a)));
    }
    if bitcast<u32>(a) == a_size { return size; }
    let half_b = 0.5 * b;
    if b == floor(b) { return select(-size, size, half_b == floor(half_b)); }
    // A root of a negative number is NaN; roots of 0 and infinity do not depend on the sign.
    return select(nothing, size, a_size == 0u || a_size == infinite);
}

fn real_powers(a: vec4<f32>, b: vec4<f32>) -> vec4<f32> {
    return vec4(real_power(a.x, b.x), real_power(a.y, b.y), real_power(a.z, b.z), real_power(a.w, b.w));
}
