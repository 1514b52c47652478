"""Moments of gates -> gradients of logits."""

from __future__ import annotations

from difflogic.cpu.coefficients import KINDS
from difflogic.cpu.compiled import inner
from difflogic.cpu.kinds import load_kinds, splat_kinds, subtract, total
from difflogic.cpu.program import Array
from difflogic.cpu.vectors import fma, mul, peek, store


@inner
def gradients(
    first: int, last: int, table: Array, partials: Array, probs: Array, moments: Array, gradients: Array
) -> bool:
    """Gates `first` to `last`: `d_w = TABLE @ moments`, `d_logits = w * (d_w - sum(w * d_w))`, `w = probs`.

    `partials [blocks, 4*G]` are summed block after block into `moments [4*G]`. True where every gradient is finite.
    """
    moments[4 * first : 4 * last] = 0
    for block in range(len(partials)):
        for index in range(4 * first, 4 * last):
            moments[index] += partials[block, index]
    c0, ca = load_kinds(table, 0), load_kinds(table, KINDS)
    cb, cab = load_kinds(table, 2 * KINDS), load_kinds(table, 3 * KINDS)
    zero = subtract(c0, c0)
    infinite = zero
    for gate in range(first, last):
        w = load_kinds(probs, gate * KINDS)
        d_w = mul(c0, splat_kinds(peek(moments, 4 * gate)))
        d_w = fma(ca, splat_kinds(peek(moments, 4 * gate + 1)), d_w)
        d_w = fma(cb, splat_kinds(peek(moments, 4 * gate + 2)), d_w)
        d_w = fma(cab, splat_kinds(peek(moments, 4 * gate + 3)), d_w)
        d_logits = mul(w, subtract(d_w, splat_kinds(total(mul(w, d_w)))))
        store(gradients, gate * KINDS, d_logits)
        infinite = fma(d_logits, zero, infinite)  # 0 times infinity is NaN
    return bool(total(infinite) == 0)
