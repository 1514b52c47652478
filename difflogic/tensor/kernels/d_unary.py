"""Adjoints of unary operations, `d_x = d_y * f'(x)`. Reference implementation of `d_unary.wgsl`."""

from collections.abc import Callable

import numpy as np

from difflogic.engine.shape import Array
from difflogic.tensor.kernels.unary import quiet


def _d_tanh(d_y: Array, y: Array) -> Array:
    slope = np.asarray(y * y)
    np.subtract(1, slope, out=slope)
    slope *= d_y
    return slope


OPS: dict[str, Callable[[Array, Array], Array]] = {
    "exp": quiet(lambda d_y, y: d_y * y),
    "log": quiet(lambda d_y, x: d_y / x),
    "sqrt": quiet(lambda d_y, y: d_y / (y + y)),
    "tanh": _d_tanh,
    "sigmoid": lambda d_y, y: d_y * (y * (1 - y)),
    "relu": lambda d_y, y: np.where(y > 0, d_y, 0),
}
"""Mapping from names of operations to functions for the adjoint, in the order of `OP` in the shader."""


def d_unary(op: str, d_y: Array, saved: Array) -> Array:
    """Return the adjoint of `x` for the operation `op`; `saved` is `x` for the logarithm, otherwise `y`."""
    return np.asarray(OPS[op](d_y, saved))
