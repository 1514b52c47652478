"""`y = f(x)`, entry by entry. Twin of `unary.wgsl`."""

from collections.abc import Callable

import numpy as np

from difflogic.engine.shape import Array


def _sigmoid(x: Array) -> Array:
    # By the exponential of what is never positive: it cannot overflow, and small results keep their digits.
    small: Array = np.exp(-np.abs(x))
    y: Array = np.where(x < 0, small, 1) / (1 + small)
    return y


OPS: dict[str, Callable[[Array], Array]] = {
    "negate": np.negative,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "tanh": np.tanh,
    "sigmoid": _sigmoid,
    "relu": lambda x: np.maximum(x, 0),
}
"""In the order of `OP` in the shader."""
_QUIET = ("exp", "log", "sqrt")
"""What is rightly infinite or no number for some x."""


def unary(op: str, x: Array) -> Array:
    """One of OPS of every entry; infinity and NaN where IEEE arithmetic has them."""
    # NumPy makes numbers of its own of arrays without axes: what is returned is an array, which can be written to.
    if op not in _QUIET:
        return np.asarray(OPS[op](x))
    with np.errstate(all="ignore"):
        return np.asarray(OPS[op](x))
