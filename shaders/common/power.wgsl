// Power by repeated squaring: all products are correctly rounded, so the results have the bits of the references.
fn power(base_: f32, exponent_: u32) -> f32 {
    var base = base_;
    var exponent = exponent_;
    var result = 1.0;
    while exponent > 0u {
        if (exponent & 1u) == 1u { result *= base; }
        base *= base;
        exponent >>= 1u;
    }
    return result;
}
