"""Initial states that are equal in all samples and epochs. Reference implementation of `same_start.wgsl`."""

import numpy as np

from difflogic.engine.shape import Array, Shape


def same_start(shape: Shape, same: Array, state: Array) -> None:
    """Copy `same [H*W, C]` into each grid of `state [C, cells]`."""
    state[:] = np.tile(same.T, shape.batch)
