"""logits -> probs -> coefficients."""

from __future__ import annotations

import math

import numpy as np

from difflogic import gates
from difflogic.cpu.compiled import inner
from difflogic.cpu.program import Array

TABLE = gates.TABLE.astype(np.float32)
KINDS = gates.GATE_COUNT


@inner
def coefficients(first: int, last: int, logits: Array, probs: Array, coefficients: Array) -> None:
    """Gates `first` to `last`: `probs [G, 16] = softmax(logits)`, `coefficients [4*G] = probs @ TABLE`."""
    for gate in range(first, last):
        largest = logits[gate].max()
        total = np.float32(0)
        for kind in range(KINDS):
            probs[gate, kind] = math.exp(logits[gate, kind] - largest)
            total += probs[gate, kind]
        coefficients[4 * gate : 4 * gate + 4] = 0
        for kind in range(KINDS):
            probs[gate, kind] /= total
            for term in range(4):
                coefficients[4 * gate + term] += probs[gate, kind] * TABLE[kind, term]
