"""What the cells of grids see, and whether it decides what they become."""

from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic.core.bits import Bits
from difflogic.core.wiring import NEIGHBOURHOODS, PATCH


def contradiction(x: Bits, y: npt.NDArray[Any], periodic: bool, neighbourhood: str) -> str:
    """Return where equal neighbourhoods in `x [N, H, W, C]` have other successors in `y`, in words, or nothing.

    Cells of which a value in `y` is below 0 do not count.
    """
    # `kinds` is the neighbourhood of each cell, at first of all cells, then of those that count. By `counted` these are
    # found again in the grids.
    cells, kinds = y.reshape(-1, y.shape[-1]), neighbourhoods(x, periodic, neighbourhood)
    counted = np.flatnonzero((cells >= 0).all(axis=1))
    _, first, kinds = np.unique(kinds[counted], return_index=True, return_inverse=True)
    cells = cells[counted]
    # Each cell beside the first one of its neighbourhood: there is a contradiction where they go different ways.
    others = np.flatnonzero((cells != cells[first[kinds]]).any(axis=1))
    if not len(others):
        return ""
    several = np.unique(kinds[others])
    both = [first[kinds[others[0]]], others[0]]
    pair = np.unravel_index(counted[both], x.shape[:3])
    seen = surroundings(x, periodic, neighbourhood)[counted[both[0]]].reshape(-1, x.shape[-1])
    states, (one, other) = (["".join(map(str, bits)) for bits in each.tolist()] for each in (seen, cells[both]))
    places = " and ".join(
        f"row {row}, column {column} of frame {frame + 1}" for frame, row, column in np.transpose(pair)
    )
    return (
        f"{len(several)} neighbourhood{'s have' if len(several) > 1 else ' has'} two successors, in "
        f"{np.isin(kinds, several).sum()} places in all, such as {places}, where the cell in the "
        f"middle of {' '.join(states)} becomes {one} and {other}"
    )


def neighbourhoods(x: Bits, periodic: bool, neighbourhood: str) -> npt.NDArray[np.int64]:
    """`[N*H*W]`: what each cell of `x [N, H, W, C]` sees, by `NEIGHBOURHOODS`, the different ones numbered from 0."""
    packed = np.packbits(surroundings(x, periodic, neighbourhood), axis=1)
    # A row of bytes for each cell is seen as one item: `unique` numbers items.
    rows = np.ascontiguousarray(packed).view(f"V{packed.shape[1]}").reshape(-1)
    kinds: npt.NDArray[np.int64] = np.unique(rows, return_inverse=True)[1]
    return kinds


def surroundings(x: Bits, periodic: bool, neighbourhood: str) -> Bits:
    """`[N*H*W, cells*C]`: the bits that each cell of `x [N, H, W, C]` sees, cell by cell of the neighbourhood."""
    cells = list(NEIGHBOURHOODS[neighbourhood])
    by_cell = patches(x, periodic).reshape(x.shape[-1], PATCH, -1)[:, cells].transpose(2, 1, 0)
    return by_cell.reshape(-1, len(cells) * x.shape[-1])


def patches(state: npt.NDArray[Any], periodic: bool) -> npt.NDArray[Any]:
    """`[B, H, W, C]` -> `[9*C, B*H*W]`, the order of `in[channel][patch]`; outside the grid is 0."""
    height, width = state.shape[1:3]
    border = ((0, 0), (1, 1), (1, 1), (0, 0))
    # Nine shifted views of one padded copy: no gather, and the order of the views is that of a patch, row by row.
    padded = np.pad(state, border, mode="wrap" if periodic else "constant")
    views = [padded[:, dy : dy + height, dx : dx + width] for dy in range(3) for dx in range(3)]
    return np.stack(views, axis=-1).transpose(3, 4, 0, 1, 2).reshape(PATCH * state.shape[3], -1)
