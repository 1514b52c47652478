"""Element-wise unary operations `y = f(x)`. Reference implementation of `unary.wgsl`."""

from collections.abc import Callable

import numpy as np

from difflogic.engine.shape import Array

quiet = np.errstate(all="ignore")
"""Decorator that suppresses warnings of infinity and NaN."""


def _sigmoid(x: Array) -> Array:
    # Use only exponentials of negative numbers, which do not overflow and keep small results precise.
    small: Array = np.exp(-np.abs(x))
    y: Array = np.where(x < 0, small, 1) / (1 + small)
    return y


OPS: dict[str, Callable[[Array], Array]] = {
    "negate": np.negative,
    "exp": quiet(np.exp),
    "log": quiet(np.log),
    "sqrt": quiet(np.sqrt),
    "tanh": np.tanh,
    "sigmoid": _sigmoid,
    "relu": lambda x: np.maximum(x, 0),
}
"""Mapping from names to operations, in the order of `OP` in the shader."""


def unary(op: str, x: Array) -> Array:
    """Return the result of the operation `op` of OPS for every entry, with infinity and NaN as in IEEE arithmetic."""
    # NumPy returns scalars for arrays without axes, but the result must be a writable array.
    return np.asarray(OPS[op](x))
