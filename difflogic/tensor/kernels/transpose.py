"""`y[i, j, ...] = x` with its axes in another order. Twin of `transpose.wgsl`."""

from __future__ import annotations

import numpy as np

from difflogic.engine.shape import Array


def transpose(axes: tuple[int, ...], x: Array) -> Array:
    """Axis k of the result is axis `axes[k]` of `x`."""
    return np.transpose(x, axes)
