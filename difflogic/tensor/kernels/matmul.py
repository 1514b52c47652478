"""`y = a @ b`, each operand as it lies or transposed. Twin of `matmul.wgsl`."""

import numpy as np

from difflogic.engine.shape import Array

ALONE = 1 << 18
"""Multiplications up to which OpenBLAS does a product on the calling thread."""
SHORT = 1 << 22
"""Below, about 0.1 ms, a product is done in pieces of that size."""


def matmul(a: Array, b: Array, transpose_a: bool = False, transpose_b: bool = False) -> Array:
    """The product of two matrices that fit each other."""
    a, b = a.T if transpose_a else a, b.T if transpose_b else b
    rows = len(a)
    if not ALONE < rows * b.size <= SHORT:
        return a @ b
    # Threads that are woken for a few microseconds of work cost more than they save, and on a busy machine the caller
    # waits for one that has no processor: a training step of small matrices then takes five times as long.
    y = np.empty((rows, b.shape[1]), np.result_type(a, b))
    piece = max(1, ALONE // b.size)
    for first in range(0, rows, piece):
        np.matmul(a[first : first + piece], b, out=y[first : first + piece])
    return y
