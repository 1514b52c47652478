"""No adjoint reaches a zeroed cell. Twin of `d_damage.wgsl`."""

from __future__ import annotations

from difflogic.engine.shape import Array, Shape
from difflogic.reference.kernels.damage import squares
from difflogic.reference.kernels.grid import shifted


def d_damage(shape: Shape, mark: int, corners: Array, d_rows: Array) -> None:
    """Row `3*c + dy` of `d_rows [3*C, cells]` is meant for the cell `dy - 1` rows on; `corners [D, B, 2]`."""
    zeroed = squares(shape, corners[mark]).reshape(-1)
    # A zeroed cell is seen in row 0 of the patches one row below it, in row 1 of its own row's, in row 2 of those
    # above. What these rows hold for its column is what would reach it, and the derivative of a constant is 0.
    for dy in range(3):
        d_rows[dy::3, shifted(shape, zeroed, 3 * dy + 1)] = 0
