"""A soft batch of 0/1 grids as words. Twin of `pack.wgsl`."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from difflogic import bits
from difflogic.shape import Shape

Array = npt.NDArray[Any]


def pack(shape: Shape, state: Array, words: Array, counts: Array) -> None:
    """`state [C, cells]` of 0 and 1 -> the last groups of `words [C, groups*H*W]`; clears the counts."""
    grids = state.T.reshape(shape.batch, shape.height, shape.width, shape.channels)
    packed = bits.pack(grids)
    words[:, -packed.shape[1] :] = packed
    counts[:] = 0
