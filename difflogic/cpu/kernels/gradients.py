"""Compute the gradients of the logits from the moments of gates."""

from difflogic.core.gates import GATE_COUNT
from difflogic.cpu.codegen.compiled import inlined
from difflogic.cpu.codegen.gate_vectors import load_gate_vector, splat_gate_vector, subtract, total
from difflogic.cpu.codegen.vectors import fma, mul, peek, store
from difflogic.engine.shape import Array


@inlined
def gradients(
    first: int, last: int, table: Array, partials: Array, probs: Array, moments: Array, gradients: Array
) -> bool:
    """Compute the gradients of gates `first` to `last`, and return whether all are finite.

    Sum `partials [blocks, 4*G]` into `moments [4*G]`. With `d_w = TABLE @ moments` and `w = probs`, the gradient is
    `w * (d_w - sum(w * d_w))`.
    """
    moments[4 * first : 4 * last] = 0
    for block in range(len(partials)):
        # In the order of blocks: sums of floats depend on their order, which is thus fixed by the grid.
        for index in range(4 * first, 4 * last):
            moments[index] += partials[block, index]
    c0, ca = load_gate_vector(table, 0), load_gate_vector(table, GATE_COUNT)
    cb, cab = load_gate_vector(table, 2 * GATE_COUNT), load_gate_vector(table, 3 * GATE_COUNT)
    # One test for all gradients, without branches: a product with 0 is NaN for infinity and NaN, else 0.
    zero = subtract(c0, c0)
    infinite = zero
    for gate in range(first, last):
        w = load_gate_vector(probs, gate * GATE_COUNT)
        d_w = mul(c0, splat_gate_vector(peek(moments, 4 * gate)))
        d_w = fma(ca, splat_gate_vector(peek(moments, 4 * gate + 1)), d_w)
        d_w = fma(cb, splat_gate_vector(peek(moments, 4 * gate + 2)), d_w)
        d_w = fma(cab, splat_gate_vector(peek(moments, 4 * gate + 3)), d_w)
        # Derivative of the softmax: adding a constant to all logits changes nothing, so the mean weighted by w is
        # removed.
        d_logits = mul(w, subtract(d_w, splat_gate_vector(total(mul(w, d_w)))))
        store(gradients, gate * GATE_COUNT, d_logits)
        infinite = fma(d_logits, zero, infinite)
    return bool(total(infinite) == 0)
