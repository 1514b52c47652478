"""Element-wise binary operations `y = f(a, b)` with broadcasting. Reference implementation of `binary.wgsl`."""

from collections.abc import Callable

import numpy as np

from difflogic.engine.shape import Array
from difflogic.tensor.kernels.unary import quiet


@quiet
def power(a: Array, b: Array) -> Array:
    """Return `a ** b`; compute squares, the most frequent case, without logarithms."""
    return np.square(a) if b.ndim == 0 and b == 2 else np.power(a, b)


OPS: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": quiet(np.divide),
    "power": power,
    "first": lambda a, b: np.array(np.broadcast_arrays(a, b)[0]),
}
"""Mapping from names to operations, in the order of `OP` in the shader."""


def binary(op: str, a: Array, b: Array) -> Array:
    """Return the result of the operation `op` of OPS. Raise ValueError if the shapes cannot be broadcast."""
    return np.asarray(OPS[op](a, b))
