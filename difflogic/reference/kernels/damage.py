"""Set squares of a state to zero. Reference implementation of `damage.wgsl`."""

import numpy as np
import numpy.typing as npt

from difflogic.engine.shape import Array, Shape


def damage(shape: Shape, mark: int, corners: Array, state: Array) -> None:
    """Zero the squares of damage number `mark` in `state [C, cells]`, in place; `corners [D, B, 2]`."""
    state[:, squares(shape, corners[mark]).reshape(-1)] = 0


def squares(shape: Shape, corners: Array) -> npt.NDArray[np.bool_]:
    """Return a mask `[samples, H*W]` of the cells in each sample's square; squares are clipped at the border."""
    cells = np.arange(shape.cells_per_grid)
    # Rows and columns counted from the corner: a cell is inside if both are from 0 to side - 1.
    rows, columns = cells // shape.width - corners[:, :1], cells % shape.width - corners[:, 1:]
    inside: npt.NDArray[np.bool_] = (rows >= 0) & (rows < shape.damage_side)
    return inside & (columns >= 0) & (columns < shape.damage_side)
