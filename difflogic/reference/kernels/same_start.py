"""Start grids that are always the same. Twin of `same_start.wgsl`."""

import numpy as np

from difflogic.engine.shape import Array, Shape


def same_start(shape: Shape, same: Array, state: Array) -> None:
    """`state [C, cells]` from `same [H*W, C]`."""
    state[:] = np.tile(same.T, shape.batch)
