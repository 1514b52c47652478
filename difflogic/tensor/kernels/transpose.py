"""Permutation of axes. Reference implementation of `transpose.wgsl`."""

import numpy as np

from difflogic.engine.shape import Array


def transpose(axes: tuple[int, ...], a: Array) -> Array:
    """Return `a` with permuted axes: axis k of the result is axis `axes[k]`."""
    return np.transpose(a, axes)
