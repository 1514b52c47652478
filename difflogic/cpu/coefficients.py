"""logits -> probs -> coefficients, per gate and, in the order the backward pass reads them, per edge."""

from __future__ import annotations

import math

import numpy as np

from difflogic import gates
from difflogic.cpu.compiled import inner
from difflogic.cpu.tables import Array, Program

TABLE = gates.TABLE.astype(np.float32)
KINDS = gates.GATE_COUNT


@inner
def coefficients(first: int, last: int, logits: Array, probs: Array, coefficients: Array) -> None:
    """Gates `first` to `last`: `probs [G, 16] = softmax(logits)`, `coefficients [G, 4] = probs @ TABLE`."""
    for gate in range(first, last):
        largest = logits[gate].max()
        total = np.float32(0)
        for kind in range(KINDS):
            probs[gate, kind] = math.exp(logits[gate, kind] - largest)
            total += probs[gate, kind]
        coefficients[gate] = 0
        for kind in range(KINDS):
            probs[gate, kind] /= total
            for term in range(4):
                coefficients[gate, term] += probs[gate, kind] * TABLE[kind, term]


@inner
def edge_coefficients(first: int, last: int, program: Program, coefficients: Array, edge_coefficients: Array) -> None:
    """Gates `first` to `last`: `(ca, cab)` for the edges of their inputs a, `(cb, cab)` for those of b; `[E, 2]`."""
    for gate in range(first, last):
        for instance in range(program.gate_starts[gate], program.gate_starts[gate + 1]):
            for side in range(2):
                edge = program.edge_of[instance, side]
                edge_coefficients[edge, 0] = coefficients[gate, 1 + side]
                edge_coefficients[edge, 1] = coefficients[gate, 3]
