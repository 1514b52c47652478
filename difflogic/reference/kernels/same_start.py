"""Start grids that are always the same. Twin of `same_start.wgsl`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic.engine.shape import Shape

Array = npt.NDArray[Any]


def same_start(shape: Shape, same: Array, state: Array) -> None:
    """`state [C, cells]` from `same [H*W, C]`."""
    state[:] = np.tile(same.T, shape.batch)
