"""The adjoint of the first state, where somebody asks for it. Twin of `d_start.wgsl`."""

from difflogic.engine.shape import Array, Shape
from difflogic.reference.kernels.grid import gather


def d_start(shape: Shape, d_next: Array, d_start: Array) -> None:
    """`d_start [C, cells]` from `d_next [9*C, cells]`, what the first step left."""
    d_start[:] = gather(shape, d_next)
