"""Extract cells' neighbourhoods, and find equal neighbourhoods with different next states."""

from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic.core.bits import Bits
from difflogic.core.wiring import NEIGHBOURHOODS, PATCH


def contradiction(x: Bits, y: npt.NDArray[Any], periodic: bool, neighbourhood: str) -> str:
    """Return a text about equal neighbourhoods in `x [N, H, W, C]` with different next states in `y`, or "" if none.

    Cells with a value below 0 in `y` are ignored.
    """
    # `kinds` contains the neighbourhood id of each cell: here of all cells, below only of cells that are not ignored.
    # `counted` contains the positions of the latter in the grids.
    cells, kinds = y.reshape(-1, y.shape[-1]), neighbourhoods(x, periodic, neighbourhood)
    counted = np.flatnonzero((cells >= 0).all(axis=1))
    _, first, kinds = np.unique(kinds[counted], return_index=True, return_inverse=True)
    cells = cells[counted]
    # Each cell is compared with the first cell that has an equal neighbourhood.
    others = np.flatnonzero((cells != cells[first[kinds]]).any(axis=1))
    if not len(others):
        return ""
    several = np.unique(kinds[others])
    both = [first[kinds[others[0]]], others[0]]
    pair = np.unravel_index(counted[both], x.shape[:3])
    patch = surroundings(x, periodic, neighbourhood)[counted[both[0]]].reshape(-1, x.shape[-1])
    states, (first_next, other_next) = (
        ["".join(map(str, bits)) for bits in rows.tolist()] for rows in (patch, cells[both])
    )
    places = " and ".join(
        f"row {row}, column {column} of frame {frame + 1}" for frame, row, column in np.transpose(pair)
    )
    return (
        f"{len(several)} neighbourhood{'s have' if len(several) > 1 else ' has'} two successors, in "
        f"{np.isin(kinds, several).sum()} places in all, such as {places}, where the cell in the "
        f"middle of {' '.join(states)} becomes {first_next} and {other_next}"
    )


def neighbourhoods(x: Bits, periodic: bool, neighbourhood: str) -> npt.NDArray[np.int64]:
    """Return an id of each cell's neighbourhood in `x`, `[N*H*W]`; equal neighbourhoods have equal ids."""
    packed = np.packbits(surroundings(x, periodic, neighbourhood), axis=1)
    # Each cell's row of bytes is viewed as one item, since `unique` compares items.
    rows = np.ascontiguousarray(packed).view(f"V{packed.shape[1]}").reshape(-1)
    return np.unique(rows, return_inverse=True)[1]


def surroundings(x: Bits, periodic: bool, neighbourhood: str) -> Bits:
    """Return each cell's neighbourhood in `x [N, H, W, C]` as bits `[N*H*W, cells*C]`, all channels cell by cell."""
    cells = list(NEIGHBOURHOODS[neighbourhood])
    by_cell = patches(x, periodic).reshape(x.shape[-1], PATCH, -1)[:, cells].transpose(2, 1, 0)
    return by_cell.reshape(-1, len(cells) * x.shape[-1])


def patches(state: npt.NDArray[Any], periodic: bool) -> npt.NDArray[Any]:
    """Return the 3x3 patches of `state [B, H, W, C]` as `[9*C, B*H*W]`; row `9*c + f` is place `f` in channel `c`.

    Cells outside the grid are 0 or, if `periodic`, the cells of the opposite side.
    """
    height, width = state.shape[1:3]
    border = ((0, 0), (1, 1), (1, 1), (0, 0))
    # Nine shifted views of one padded copy need no gather; they are in the order of a patch, row by row.
    padded = np.pad(state, border, mode="wrap" if periodic else "constant")
    views = [padded[:, dy : dy + height, dx : dx + width] for dy in range(3) for dx in range(3)]
    return np.stack(views, axis=-1).transpose(3, 4, 0, 1, 2).reshape(PATCH * state.shape[3], -1)
