"""Squares of cells that are zeroed on the way, and their adjoint. Twins of `damage.wgsl` and `d_damage.wgsl`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic.bits import WORD
from difflogic.reference.grid import shifted
from difflogic.shape import Shape

Array = npt.NDArray[Any]


def damage(shape: Shape, index: int, corners: Array, state: Array) -> None:
    """The `state [C, cells]` of the `index`-th damage step, in place; `corners [D, B, 2]`."""
    state[:, _squares(shape, corners[index]).reshape(-1)] = 0


def d_damage(shape: Shape, index: int, corners: Array, d_rows: Array) -> None:
    """No adjoint reaches a zeroed cell: row `3*c + dy` of `d_rows [3*C, cells]` is for the cell `dy - 1` rows on."""
    zeroed = _squares(shape, corners[index]).reshape(-1)
    for dy in range(3):
        d_rows[dy::3, shifted(shape, zeroed, 3 * dy + 1)] = 0


def hard_damage(shape: Shape, index: int, corners: Array, words: Array) -> None:
    """`words [C, groups*H*W]` in place; `corners [D, samples, 2]`, a bit per sample."""
    zeroed = _squares(shape, corners[index])
    groups = -(-len(zeroed) // WORD)
    samples = np.zeros((groups * WORD, shape.cells_per_grid), dtype=np.uint32)
    samples[: len(zeroed)] = zeroed
    shifts = np.arange(WORD, dtype=np.uint32)[:, None]
    hit = np.bitwise_or.reduce(samples.reshape(groups, WORD, -1) << shifts, axis=1)
    words &= ~hit.reshape(-1)


def _squares(shape: Shape, corners: Array) -> npt.NDArray[np.bool_]:
    """`[samples, H*W]`: True where a cell is zeroed; a square is clipped at the border."""
    cells = np.arange(shape.cells_per_grid)
    rows, columns = cells // shape.width - corners[:, :1], cells % shape.width - corners[:, 1:]
    inside: npt.NDArray[np.bool_] = (rows >= 0) & (rows < shape.damage_side)
    return inside & (columns >= 0) & (columns < shape.damage_side)
