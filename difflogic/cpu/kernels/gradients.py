"""Moments of gates -> gradients of logits."""

from difflogic.core.gates import GATE_COUNT
from difflogic.cpu.codegen.compiled import inlined
from difflogic.cpu.codegen.gate_vectors import load_gate_vector, splat_gate_vector, subtract, total
from difflogic.cpu.codegen.vectors import fma, mul, peek, store
from difflogic.engine.shape import Array


@inlined
def gradients(
    first: int, last: int, table: Array, partials: Array, probs: Array, moments: Array, gradients: Array
) -> bool:
    """Gates `first` to `last`: `d_w = TABLE @ moments`, `d_logits = w * (d_w - sum(w * d_w))`, `w = probs`.

    `partials [blocks, 4*G]` are summed block after block into `moments [4*G]`. True where every gradient is finite.
    """
    moments[4 * first : 4 * last] = 0
    for block in range(len(partials)):
        # Block after block, whoever computed them: float sums depend on their order, and this one is fixed by the grid.
        for index in range(4 * first, 4 * last):
            moments[index] += partials[block, index]
    c0, ca = load_gate_vector(table, 0), load_gate_vector(table, GATE_COUNT)
    cb, cab = load_gate_vector(table, 2 * GATE_COUNT), load_gate_vector(table, 3 * GATE_COUNT)
    # One test for all gradients of a share, without a branch: products with 0 are 0 but for NaN and infinity, and NaN
    # stays.
    zero = subtract(c0, c0)
    infinite = zero
    for gate in range(first, last):
        w = load_gate_vector(probs, gate * GATE_COUNT)
        d_w = mul(c0, splat_gate_vector(peek(moments, 4 * gate)))
        d_w = fma(ca, splat_gate_vector(peek(moments, 4 * gate + 1)), d_w)
        d_w = fma(cb, splat_gate_vector(peek(moments, 4 * gate + 2)), d_w)
        d_w = fma(cab, splat_gate_vector(peek(moments, 4 * gate + 3)), d_w)
        # The softmax's own derivative: a shift of all sixteen logits changes nothing, so the mean by `w` is taken out.
        d_logits = mul(w, subtract(d_w, splat_gate_vector(total(mul(w, d_w)))))
        store(gradients, gate * GATE_COUNT, d_logits)
        infinite = fma(d_logits, zero, infinite)  # 0 times infinity is NaN
    return bool(total(infinite) == 0)
