"""Adjoint of the initial state, for circuit functions. Reference implementation of `d_start.wgsl`."""

from difflogic.engine.shape import Array, Shape
from difflogic.reference.kernels.grid import gather


def d_start(shape: Shape, d_next: Array, d_start: Array) -> None:
    """Compute `d_start [C, cells]` from `d_next [9*C, cells]`, the result of the first step's backward pass."""
    d_start[:] = gather(shape, d_next)
