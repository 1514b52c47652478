"""Flip bits and apply stuck cells in a hard state, sample by sample. Reference implementation of `hard_faults.wgsl`."""

import numpy as np

from difflogic.core.bits import WORD, pack_grids
from difflogic.engine.events import Faults
from difflogic.engine.shape import Array, Shape


def hard_faults(shape: Shape, mark: int, fault_keys: Array, listed: Array | None, words: Array) -> None:
    """Apply the faults of step `mark` to `words [C, groups*H*W]` in place; `shape.batch` is the number of groups."""
    drawn = Faults(shape.faults, fault_keys, listed)
    grids = (shape.batch * WORD, shape.height, shape.width, shape.channels)
    stuck = drawn.stuck(grids)[..., None]
    works, ones = pack_grids((stuck == 0).astype(np.uint8)), pack_grids((stuck == 2).astype(np.uint8))
    flips = pack_grids(drawn.flips(mark, grids).astype(np.uint8))
    words[:] = (words ^ flips) & works | ones
