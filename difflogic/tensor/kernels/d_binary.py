"""Adjoints of binary operations, `d_y * df/da` or `d_y * df/db`, before broadcast axes are summed.

Reference implementation of `d_binary.wgsl`.
"""

from collections.abc import Callable

import numpy as np

from difflogic.engine.shape import Array
from difflogic.tensor.kernels.binary import power
from difflogic.tensor.kernels.unary import quiet


@quiet
def _power_d_a(d_y: Array, a: Array, b: Array) -> Array:
    # a ** 0 has the derivative 0, also at a = 0, where the formula is 0 times infinity.
    return d_y * np.where(b == 0, 0, b * power(a, b - 1))


@quiet
def _power_d_b(d_y: Array, a: Array, b: Array) -> Array:
    # At a = 0 the derivative is 0, where the formula gives NaN.
    return d_y * np.where(a == 0, 0, power(a, b) * np.log(a))


OPS: dict[str, Callable[[Array, Array, Array], Array]] = {
    "multiply a": lambda d_y, a, b: d_y * b,
    "multiply b": lambda d_y, a, b: d_y * a,
    "divide a": quiet(lambda d_y, a, b: d_y / b),
    "divide b": quiet(lambda d_y, a, b: -d_y * a / (b * b)),
    "power a": _power_d_a,
    "power b": _power_d_b,
}
"""Mapping from operation and operand to the function for the adjoint, in the order of `OP` in the shader."""


def d_binary(op: str, d_y: Array, a: Array, b: Array) -> Array:
    """Return the adjoint of the operand in `op`, an operation and operand such as `divide b`, in the shape of `d_y`."""
    return np.asarray(OPS[op](d_y, a, b))
