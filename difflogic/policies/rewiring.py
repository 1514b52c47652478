"""Replacement of candidate wires: improbable candidates are replaced by inputs that would decrease the loss most.

With learned wiring, an input of a gate is chosen among few candidates. Replacing them between passes searches all
inputs at the cost of a few candidates. Source: weights regrown by gradient, Evci et al. 2020 (arXiv 1911.11134).
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from difflogic.core import gates
from difflogic.core.wiring import BLOCK
from difflogic.engine.shape import Array
from difflogic.model.checked import WIRES
from difflogic.model.circuit import Circuit
from difflogic.reference.kernels.coefficients import softmax

POOL = 512
"""Number of inputs sampled for each block of gates, from which its new candidates are selected."""
BEHIND = 4.0
"""Difference of the logits of a wire's most probable candidate and of its new candidates; those below are replaced."""


def rewired(
    circuit: Circuit, x: npt.NDArray[np.float32], gradient: Callable[[Array], Array], generator: np.random.Generator
) -> Circuit:
    """Replace improbable candidates, whose logit is BEHIND that of their wire's best, by inputs with a gain above 0.

    The gain of an input is the decrease of the loss, to first order, if the wire used it instead of its most probable
    candidate. That candidate stays, so the hard circuit does not change.

    Args:
        circuit: Feed-forward circuit with k candidates for each wire.
        x: Bits of N samples, float32 `[N, inputs]`.
        gradient: Function that returns the gradient of the loss with respect to hard outputs `[N, outputs]`.
        generator: Generator that samples inputs.

    Returns:
        The circuit with new candidates.
    """
    wires, logits, chosen = [*map(np.copy, circuit.update_wires)], circuit.logits[WIRES][0].copy(), circuit.chosen
    table, values, end = gates.TABLE.astype(x.dtype), [x.T], len(logits)
    for gate_logits, pairs in zip(chosen.update, chosen.update_wires, strict=True):
        (c0, ca, cb, cab), (a, b) = table[gate_logits.argmax(axis=1)].T[..., None], values[-1][pairs]
        values.append(c0 + ca * a + (cb + cab * a) * b)
    d_y = gradient(values[-1].T).T
    for number in reversed(range(len(wires))):
        begin, inputs, d_inputs = end - len(d_y), values[number], np.zeros_like(values[number])
        for first in range(0, len(d_y), BLOCK):
            block = slice(first, min(first + BLOCK, len(d_y)))
            pairs, d = chosen.update_wires[number][:, block], d_y[block]
            (_, ca, cb, cab), (a, b) = (softmax(chosen.update[number][block]) @ table).T[..., None], inputs[pairs]
            d_a, d_b = d * (ca + cab * b), d * (cb + cab * a)
            pool = generator.permutation(len(inputs))[:POOL]
            gains = np.stack([(d_a * a).sum(axis=1), (d_b * b).sum(axis=1)])[..., None]
            gains = gains - np.stack([d_a, d_b]) @ inputs[pool].T
            rows = logits[begin + block.start : begin + block.stop].swapaxes(0, 1)
            candidates, shares = (v.reshape(-1, v.shape[-1]).tolist() for v in (wires[number][:, block], softmax(rows)))
            _replace(wires[number][:, block], rows, pool, gains)
            # By their shares, as in training, so that gates that no wire has chosen get a gradient too.
            for sources, weights, row in zip(candidates, shares, (*d_a, *d_b), strict=True) if number else ():
                for source, weight in zip(sources, weights, strict=True):
                    d_inputs[source] += weight * row
        end, d_y = begin, d_inputs
    return replace(circuit, update_wires=tuple(wires), wire_logits=logits)


def _replace(wires: Array, logits: Array, pool: Array, gains: Array) -> None:
    """Replace candidates `wires [2, n, k]` by those of `pool [m]` with the largest `gains [2, n, m]`, in place."""
    gains[(wires[..., None] == pool).any(axis=2)] = -np.inf
    count = min(logits.shape[-1], len(pool))
    least = logits.argsort(axis=-1, kind="stable")[..., :count]
    best = np.argsort(-gains, axis=-1, kind="stable")[..., :count]
    start = logits.max(axis=-1, keepdims=True) - np.asarray(BEHIND, logits.dtype)
    is_new = (np.take_along_axis(logits, least, -1) < start) & (np.take_along_axis(gains, best, -1) > 0)
    for values, new in ((wires, pool[best]), (logits, start)):
        np.put_along_axis(values, least, np.where(is_new, new, np.take_along_axis(values, least, -1)), -1)
