"""`y = f(a, b)`, entry by entry, where axes of size 1 are repeated as needed. Twin of `binary.wgsl`."""

from collections.abc import Callable

import numpy as np

from difflogic.engine.shape import Array


def power(a: Array, b: Array) -> Array:
    """`a ** b`; squares, which are what is mostly asked for, without logarithms."""
    return np.square(a) if b.ndim == 0 and b == 2 else np.power(a, b)


OPS: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "power": power,
}
"""In the order of `OP` in the shader."""
_QUIET = ("divide", "power")
"""What is rightly infinite or no number for some operands."""


def binary(op: str, a: Array, b: Array) -> Array:
    """One of OPS. Raises ValueError where the shapes do not broadcast."""
    if op not in _QUIET:
        return np.asarray(OPS[op](a, b))
    with np.errstate(all="ignore"):
        return np.asarray(OPS[op](a, b))
