"""The 3x3 Moore patch of every cell, and the adjoint of taking it. Twin of `common/grid.wgsl`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic.shape import Shape
from difflogic.wiring import CENTRE, PATCH

Array = npt.NDArray[Any]


def shifted(shape: Shape, values: Array, f: int, sign: int = 1) -> Array:
    """Per cell, the value at patch position `f = 3*dy + dx` (`sign=-1`: at the opposite position).

    `values`: `[..., cells]`. Outside the grid: 0, or wrapped when periodic.
    """
    dy, dx = sign * (f // 3 - 1), sign * (f % 3 - 1)
    grid = values.reshape(*values.shape[:-1], shape.batch, shape.height, shape.width)
    if shape.periodic:
        return np.roll(grid, (-dy, -dx), axis=(-2, -1)).reshape(values.shape)
    padded = np.pad(grid, [(0, 0)] * (grid.ndim - 2) + [(1, 1), (1, 1)])
    return padded[..., 1 + dy : 1 + dy + shape.height, 1 + dx : 1 + dx + shape.width].reshape(values.shape)


def write_patches(shape: Shape, state: Array, nodes: Array) -> None:
    """The first `9*C` nodes: `nodes[c*9 + f, cell]` from `state [C, cells]`."""
    for f in range(PATCH):
        nodes[f : PATCH * shape.channels : PATCH] = shifted(shape, state, f)


def gather_patches(shape: Shape, d_patches: Array) -> Array:
    """`d_state [C, cells]`: a cell is position `f` of the patch of its neighbour opposite `f`."""
    by_channel = d_patches.reshape(shape.channels, PATCH, shape.cells)
    d_state = np.zeros_like(by_channel[:, CENTRE])
    for f in range(PATCH):
        d_state += shifted(shape, by_channel[:, f], f, sign=-1)
    return d_state
