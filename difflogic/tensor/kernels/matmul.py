"""Matrix product `y = a @ b`, in which either operand may be transposed. Reference implementation of `matmul.wgsl`."""

import numpy as np

from difflogic.engine.shape import Array

ALONE = 1 << 18
"""Maximum number of multiplications of a product that OpenBLAS computes in the calling thread alone."""
SHORT = 1 << 22
"""Maximum number of multiplications (about 0.1 ms) of a product that is split into pieces of ALONE multiplications."""


def matmul(a: Array, b: Array, transpose_a: bool = False, transpose_b: bool = False) -> Array:
    """Return the product of two matrices, each of which may be transposed."""
    a, b = a.T if transpose_a else a, b.T if transpose_b else b
    rows = len(a)
    if not ALONE < rows * b.size <= SHORT:
        return a @ b
    # Waking threads for a few microseconds of work costs more than it saves. On a busy machine the caller waits for a
    # thread that gets no core, and a training step with small matrices takes five times as long.
    y = np.empty((rows, b.shape[1]), np.result_type(a, b))
    piece = max(1, ALONE // b.size)
    for first in range(0, rows, piece):
        np.matmul(a[first : first + piece], b, out=y[first : first + piece])
    return y
