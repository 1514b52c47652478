"""Coefficients and most probable functions of soft gates. Reference implementation of `coefficients.wgsl`."""

from typing import NamedTuple

import numpy as np

from difflogic.core import gates
from difflogic.engine.shape import Array


def softmax(logits: Array) -> Array:
    """Return the softmax of logits `[..., 16]`."""
    # Minus the largest logit, so that the largest exponential is 1: none overflows, and the sum is at least 1.
    exponentials = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(exponentials / exponentials.sum(axis=-1, keepdims=True))


class Parameters(NamedTuple):
    """Coefficients of gates and shares of candidates for a forward or backward pass."""

    coefficients: Array
    """Coefficients (c0, ca, cb, cab) of each gate, `[G, 4]`."""
    shares: Array | None = None
    """Weights of each input's candidates, which sum to 1, `[G, 2, k]`; None if the wiring is fixed."""


def coefficients(logits: Array, coefficients: Array, gate_ids: Array) -> None:
    """Write `softmax(logits) @ TABLE` to `coefficients [G, 4]`, `argmax(logits)` to `gate_ids [G]`; `logits [G, 16]`.

    Among equal logits, `argmax` selects the lowest id, as in the paper's notebook.
    """
    coefficients[:] = softmax(logits) @ gates.TABLE.astype(logits.dtype)
    gate_ids[:] = logits.argmax(axis=-1)
