"""`y[i, j, ...] = a` with its axes in another order. Twin of `transpose.wgsl`."""

import numpy as np

from difflogic.engine.shape import Array


def transpose(axes: tuple[int, ...], a: Array) -> Array:
    """Axis k of the result is axis `axes[k]` of `a`."""
    return np.transpose(a, axes)
