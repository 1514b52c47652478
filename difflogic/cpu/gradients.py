"""Moments of gates -> gradients of logits."""

from __future__ import annotations

import numpy as np

from difflogic.cpu.coefficients import KINDS, TABLE
from difflogic.cpu.compiled import inner
from difflogic.cpu.tables import Array


@inner
def gradients(first: int, last: int, partials: Array, probs: Array, gradients: Array) -> bool:
    """Gates `first` to `last`: `d_w = TABLE @ moments`, `d_logits = w * (d_w - sum(w * d_w))`, `w = probs`.

    `partials [tiles, 4*G]` are summed tile after tile. True where every gradient is finite.
    """
    finite = True
    for gate in range(first, last):
        moments = np.zeros(4, dtype=np.float32)
        for tile in range(len(partials)):
            for term in range(4):
                moments[term] += partials[tile, 4 * gate + term]
        d_probs = np.zeros(KINDS, dtype=np.float32)
        mean = np.float32(0)
        for kind in range(KINDS):
            for term in range(4):
                d_probs[kind] += TABLE[kind, term] * moments[term]
            mean += probs[gate, kind] * d_probs[kind]
        for kind in range(KINDS):
            gradients[gate, kind] = probs[gate, kind] * (d_probs[kind] - mean)
            finite &= np.isfinite(gradients[gate, kind])
    return finite
