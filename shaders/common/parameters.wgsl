// Coefficients and hard gates from a row of parameters. Needs `coefficients`, `gate_ids`, common/gates.wgsl.
#import common/candidates.wgsl
#import common/shares.wgsl

fn put_parameters(model: u32, row: u32, logits: array<f32, 16>) {
    if row < shape.gates {
        let made = choice(logits, 0u, GATES);
        coefficients[(model * shape.gates + row) * record()] = mixture(made.share);
        gate_ids[id_at(model, row)] = made.best;
        return;
    }
    for (var first = 0u; first < GATES; first += CANDIDATES) {
        let wire = ((row - shape.gates) * GATES + first) / CANDIDATES;
        if wire >= 2u * shape.gates { return; }
        let made = choice(logits, first, CANDIDATES);
        put_shares(model, wire, first, made, false);
        gate_ids[id_at(model, shape.gates + wire)] = made.best;
    }
}
