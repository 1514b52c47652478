"""Clip by the global norm, in two halves: every share of the gates is summed, then every one is shortened."""

import numpy as np

from difflogic.core.gates import GATE_COUNT
from difflogic.cpu.codegen.compiled import inlined
from difflogic.engine.shape import Array


@inlined
def squares(first: int, last: int, clip: np.float32, gradients: Array) -> float:
    """Return for gates `first` to `last` the sum of `(g / clip)^2`."""
    total = 0.0
    for index in range(first * GATE_COUNT, last * GATE_COUNT):
        # Shares of the limit, not gradients: squares of 1e20 would be beyond float32, on which GPUs sum them.
        share = np.float64(gradients[index] / clip)
        total += share * share
    return total


@inlined
def shorten(first: int, last: int, total: float, gradients: Array) -> None:
    """Gates `first` to `last`, where the sum over all gates is `total`."""
    # The sum is of shares of the limit: beyond 1 the norm is larger than the limit, else nothing is changed.
    if total > 1:
        norm = np.float32(np.sqrt(total))
        for index in range(first * GATE_COUNT, last * GATE_COUNT):
            gradients[index] /= norm
