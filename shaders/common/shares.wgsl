// Shares of candidates in `coefficients`. Needs `coefficients`, common/candidates.wgsl.

// Write a wire's shares (wire 2 * gate is input a, 2 * gate + 1 is input b): the softmax or, if `is_hard`, one-hot.
fn put_shares(model: u32, wire: u32, first: u32, made: Choice, is_hard: bool) {
    var share = made.share;
    let to = wire % 2u * CANDIDATES;
    let row = (model * shape.gates + wire / 2u) * record() + 1u;
    for (var i = 0u; i < CANDIDATES; i++) {
        let value = select(share[first + i], f32(i == made.best), is_hard);
        coefficients[row + (to + i) / 4u][(to + i) % 4u] = value;
    }
}
