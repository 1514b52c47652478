"""Sum of a tensor, or of its squares, over some axes. Reference of `reduce.wgsl`."""

import numpy as np

from difflogic.engine.shape import Array

OPS = ("sum", "squares")
"""Operations, in the order of `OP` in the shader."""


def reduce(op: str, axes: tuple[int, ...], x: Array) -> Array:
    """Compute one of OPS over `axes`, which are removed from the result."""
    return np.asarray(np.add.reduce(x if op == "sum" else np.square(x), axis=axes))
