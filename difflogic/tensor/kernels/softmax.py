"""Softmax, `y = exp(x) / sum exp(x)` along an axis. Reference implementation of `softmax.wgsl`."""

import numpy as np

from difflogic.engine.shape import Array


def softmax(axis: int, x: Array) -> Array:
    """Return the softmax of `x` along `axis`."""
    # Subtracting the maximum does not change the result, and avoids the overflow of exp from 89 on. `initial` is for an
    # empty axis.
    y: Array = np.exp(x - x.max(axis=axis, keepdims=True, initial=-np.inf))
    y /= y.sum(axis=axis, keepdims=True)
    return y
