"""`y = exp(x) / sum exp(x)` along an axis. Twin of `softmax.wgsl`."""

import numpy as np

from difflogic.engine.shape import Array


def softmax(axis: int, x: Array) -> Array:
    """Shares that sum to 1 along `axis`."""
    # Less the largest, which changes no share: exp overflows from 89 on. `initial` is for an axis of no entries, which
    # has no largest one.
    y: Array = np.exp(x - x.max(axis=axis, keepdims=True, initial=-np.inf))
    y /= y.sum(axis=axis, keepdims=True)
    return y
