"""Compute the coefficients of soft gates from their logits."""

import numpy as np

from difflogic.core.gates import GATE_COUNT
from difflogic.cpu.codegen.compiled import inlined
from difflogic.cpu.codegen.gate_vectors import exp, largest, load_gate_vector, splat_gate_vector, subtract, total
from difflogic.cpu.codegen.vectors import mul, store, store_sums
from difflogic.engine.shape import Array


@inlined
def coefficients(first: int, last: int, table: Array, logits: Array, probs: Array, coefficients: Array) -> None:
    """Compute `probs [16*G] = softmax(logits)` and `coefficients [4*G] = probs @ TABLE` of gates `first` to `last`.

    `table [4*16]` is TABLE, transposed.
    """
    c0, ca = load_gate_vector(table, 0), load_gate_vector(table, GATE_COUNT)
    cb, cab = load_gate_vector(table, 2 * GATE_COUNT), load_gate_vector(table, 3 * GATE_COUNT)
    for gate in range(first, last):
        x = load_gate_vector(logits, gate * GATE_COUNT)
        # Minus the largest logit, so that no exponential overflows: the largest is e^0 = 1.
        shares = exp(subtract(x, splat_gate_vector(largest(x))))
        # One division per gate, then products: sixteen divisions would take longer than everything else here.
        w = mul(shares, splat_gate_vector(np.float32(1) / total(shares)))
        store(probs, gate * GATE_COUNT, w)
        # All four sums at once: see `four_sums`, which uses all lanes.
        store_sums(coefficients, 4 * gate, mul(w, c0), mul(w, ca), mul(w, cb), mul(w, cab))
