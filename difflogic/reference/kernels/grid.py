"""Extraction of every cell's 3x3 Moore patch, and its adjoint. Reference implementation of `common/grid.wgsl`."""

import numpy as np

from difflogic.core.wiring import PATCH
from difflogic.engine.shape import Array, Shape


def shifted(shape: Shape, values: Array, f: int, sign: int = 1) -> Array:
    """Return the value at position `f = 3*dy + dx` of each cell's patch (at the opposite position if `sign` is -1).

    `values` are `[..., cells]`. Cells outside the grid are 0 or, on a periodic grid, cells of the opposite side.
    """
    dy, dx = sign * (f // 3 - 1), sign * (f % 3 - 1)
    grid = values.reshape(*values.shape[:-1], shape.batch, shape.height, shape.width)
    if shape.periodic:
        return np.roll(grid, (-dy, -dx), axis=(-2, -1)).reshape(values.shape)
    # A border of zeros on all sides; a window of the grid's own size, moved by (dy, dx), is then the shifted grid.
    padded = np.pad(grid, [(0, 0)] * (grid.ndim - 2) + [(1, 1), (1, 1)])
    return padded[..., 1 + dy : 1 + dy + shape.height, 1 + dx : 1 + dx + shape.width].reshape(values.shape)


def write_patches(shape: Shape, state: Array, nodes: Array, patch: int = PATCH) -> None:
    """Write the patches of `state [C, cells]` to `nodes[c*9 + f, cell]`; if `patch` is 1, copy the state instead."""
    if patch == 1:
        nodes[: shape.channels] = state
        return
    for f in range(PATCH):
        nodes[f : PATCH * shape.channels : PATCH] = shifted(shape, state, f)


def gather(shape: Shape, d_patches: Array, patch: int = PATCH) -> Array:
    """Return state adjoints `[C, cells]`: sums of a cell's adjoints in all patches, from `d_patches [9*C, cells]`."""
    if patch == 1:
        return d_patches
    d_state = np.zeros_like(d_patches[::PATCH])
    for f in range(PATCH):
        d_state += shifted(shape, d_patches[f::PATCH], f, sign=-1)
    return d_state
