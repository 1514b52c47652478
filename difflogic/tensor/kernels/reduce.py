"""`y` = the sum of `x`, or of its squares, over some axes. Twin of `reduce.wgsl`."""

import numpy as np

from difflogic.engine.shape import Array

OPS = ("sum", "squares")
"""In the order of `OP` in the shader."""


def reduce(op: str, axes: tuple[int, ...], x: Array) -> Array:
    """One of OPS over `axes`, which the result has no more."""
    return np.asarray(np.add.reduce(x if op == "sum" else np.square(x), axis=axes))
