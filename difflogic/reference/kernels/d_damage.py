"""Clear the adjoints of damaged cells. Reference implementation of `d_damage.wgsl`."""

from difflogic.core.wiring import PATCH
from difflogic.engine.shape import Array, Shape
from difflogic.reference.kernels.damage import squares
from difflogic.reference.kernels.grid import shifted


def d_damage(shape: Shape, mark: int, corners: Array, d_patches: Array) -> None:
    """Clear the adjoints in `d_patches [9*C, cells]` of cells that damage number `mark` zeroed; `corners [D, B, 2]`."""
    zeroed = squares(shape, corners[mark]).reshape(-1)
    # Entry `f` of a patch is an adjoint of the cell at position `f`. The derivative of a zeroed value is 0.
    for f in range(PATCH):
        d_patches[f::PATCH, shifted(shape, zeroed, f)] = 0
