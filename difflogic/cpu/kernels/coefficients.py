"""logits -> probs -> coefficients."""

from __future__ import annotations

import numpy as np

from difflogic import gates
from difflogic.cpu.compiled import inner
from difflogic.cpu.kinds import exp, largest, load_kinds, splat_kinds, subtract, total
from difflogic.cpu.program import Array
from difflogic.cpu.vectors import mul, store, store_sums

KINDS = gates.GATE_COUNT


@inner
def coefficients(first: int, last: int, table: Array, logits: Array, probs: Array, coefficients: Array) -> None:
    """Gates `first` to `last`: `probs [16*G] = softmax(logits)`, `coefficients [4*G] = probs @ TABLE`.

    `table [4*16]` is TABLE, transposed.
    """
    c0, ca = load_kinds(table, 0), load_kinds(table, KINDS)
    cb, cab = load_kinds(table, 2 * KINDS), load_kinds(table, 3 * KINDS)
    for gate in range(first, last):
        x = load_kinds(logits, gate * KINDS)
        shares = exp(subtract(x, splat_kinds(largest(x))))
        w = mul(shares, splat_kinds(np.float32(1) / total(shares)))
        store(probs, gate * KINDS, w)
        store_sums(coefficients, 4 * gate, mul(w, c0), mul(w, ca), mul(w, cb), mul(w, cab))


def transposed_table() -> Array:
    """float32 `[4*16]`."""
    table: Array = np.ascontiguousarray(gates.TABLE.T, dtype=np.float32).reshape(-1)
    return table
