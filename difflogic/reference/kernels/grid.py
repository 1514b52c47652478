"""The 3x3 Moore patch of every cell, and the adjoint of taking it. Twin of `common/grid.wgsl`."""

from __future__ import annotations

import numpy as np

from difflogic.core.wiring import PATCH
from difflogic.engine.shape import Array, Shape


def shifted(shape: Shape, values: Array, f: int, sign: int = 1) -> Array:
    """Per cell, the value at patch position `f = 3*dy + dx` (`sign=-1`: at the opposite position).

    `values`: `[..., cells]`. Outside the grid: 0, or wrapped when periodic.
    """
    dy, dx = sign * (f // 3 - 1), sign * (f % 3 - 1)
    grid = values.reshape(*values.shape[:-1], shape.batch, shape.height, shape.width)
    if shape.periodic:
        return np.roll(grid, (-dy, -dx), axis=(-2, -1)).reshape(values.shape)
    # A border of zeros on all sides; a window of the grid's own size, moved by (dy, dx), is then the shifted grid.
    padded = np.pad(grid, [(0, 0)] * (grid.ndim - 2) + [(1, 1), (1, 1)])
    return padded[..., 1 + dy : 1 + dy + shape.height, 1 + dx : 1 + dx + shape.width].reshape(values.shape)


def write_patches(shape: Shape, state: Array, nodes: Array, patch: int = PATCH) -> None:
    """The first `9*C` nodes: `nodes[c*9 + f, cell]` from `state [C, cells]`; with a patch of 1 the state itself."""
    if patch == 1:
        nodes[: shape.channels] = state
        return
    for f in range(PATCH):
        nodes[f : PATCH * shape.channels : PATCH] = shifted(shape, state, f)


def sum_rows(shape: Shape, d_patches: Array, patch: int = PATCH) -> Array:
    """`d_rows [3*C, cells]` from `[9*C, cells]`: what a cell's patch and those left and right of it send to one column.

    Row `3*c + dy` of a cell is meant for the cell `dy - 1` rows on. With a patch of 1 nothing goes to others.
    """
    if patch == 1:
        return d_patches
    by_row = d_patches.reshape(shape.channels, 3, 3, shape.cells)
    d_rows = np.zeros_like(by_row[:, :, 0])
    # Two passes, along rows here and across them in `gather_rows`, are six shifted additions in place of nine; and a
    # kernel has to pass on 3 values to a cell and channel, not 9.
    for dx in range(3):
        d_rows += shifted(shape, by_row[:, :, dx], 3 + dx, sign=-1)
    return d_rows.reshape(-1, shape.cells)


def gather_rows(shape: Shape, d_rows: Array, patch: int = PATCH) -> Array:
    """`d_state [C, cells]`: a cell is in row `dy` of the patches of the neighbours opposite."""
    if patch == 1:
        return d_rows
    by_row = d_rows.reshape(shape.channels, 3, shape.cells)
    d_state = np.zeros_like(by_row[:, 0])
    for dy in range(3):
        d_state += shifted(shape, by_row[:, dy], 3 * dy + 1, sign=-1)
    return d_state
