// Natural logarithm that is also correct for denormal numbers, which drivers may treat as 0.

fn logarithm(x: f32) -> f32 {
    let bits = bitcast<u32>(x);
    let size = bits & 0x7fffffffu;
    if size == 0u || size >= 0x00800000u { return log(x); }
    // The bits of a denormal number are an integer in units of 2^-149; the logarithm of a negative number is NaN.
    let whole = f32(size);
    return select(log(whole) - 103.27893, log(-whole), bits > size);
}

fn logarithms(v: vec4<f32>) -> vec4<f32> {
    return vec4(logarithm(v.x), logarithm(v.y), logarithm(v.z), logarithm(v.w));
}
