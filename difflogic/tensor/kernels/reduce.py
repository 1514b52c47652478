"""Sum of a tensor, or of its squares, over some axes. Reference implementation of `reduce.wgsl`."""

import numpy as np

from difflogic.engine.shape import Array

OPS = ("sum", "squares")
"""Names of the operations, in the order of `OP` in the shader."""


def reduce(op: str, axes: tuple[int, ...], x: Array) -> Array:
    """Return the sum of `x`, or of its squares, over `axes`, which the result does not contain."""
    return np.asarray(np.add.reduce(x if op == "sum" else np.square(x), axis=axes))
