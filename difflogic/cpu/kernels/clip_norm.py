"""Clip gradients by their global norm, in two passes: sum the squares of each share of the gates, then scale."""

import numpy as np

from difflogic.core.gates import GATE_COUNT
from difflogic.cpu.codegen.compiled import inlined
from difflogic.engine.shape import Array


@inlined
def squares(first: int, last: int, clip: np.float32, gradients: Array) -> float:
    """Return the sum of `(g / clip)^2` over the gates `first` to `last`."""
    total = 0.0
    for index in range(first * GATE_COUNT, last * GATE_COUNT):
        # Divided by the limit first: the square of 1e20 would overflow float32, in which GPUs compute this sum.
        share = np.float64(gradients[index] / clip)
        total += share * share
    return total


@inlined
def shorten(first: int, last: int, total: float, gradients: Array) -> None:
    """Scale the gradients of gates `first` to `last`; `total` is the sum of `squares` over all gates."""
    # If the sum is at most 1, the norm is at most the limit, and nothing changes.
    if total > 1:
        norm = np.float32(np.sqrt(total))
        for index in range(first * GATE_COUNT, last * GATE_COUNT):
            gradients[index] /= norm
