// a to the power of b as IEEE arithmetic has it; WGSL's own knows no negative a.

fn real_power(a: f32, b: f32) -> f32 {
    if b == 2.0 { return a * a; }
    if b == 1.0 { return a; }
    if b == 0.0 { return 1.0; }
    let size = pow(abs(a), b);
    if a >= 0.0 { return size; }
    let half_b = 0.5 * b;
    if b == floor(b) { return select(-size, size, half_b == floor(half_b)); }
    // A root of a negative number is none.
    return bitcast<f32>(bitcast<u32>(size) | 0x7fc00000u);
}

fn real_powers(a: vec4<f32>, b: vec4<f32>) -> vec4<f32> {
    return vec4(real_power(a.x, b.x), real_power(a.y, b.y), real_power(a.z, b.z), real_power(a.w, b.w));
}
