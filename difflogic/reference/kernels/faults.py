"""Flip bits and apply stuck cells in a state. Reference implementation of `faults.wgsl`."""

import numpy as np
import numpy.typing as npt

from difflogic.engine.events import Faults
from difflogic.engine.shape import Array, Shape


def faults(shape: Shape, mark: int, fault_keys: Array, listed: Array | None, state: Array) -> None:
    """Apply the faults of step `mark` to `state [C, cells]` in place; `fault_keys [2]`, stuck cells `listed [H*W]`."""
    flips, stuck = cells_last(shape, mark, Faults(shape.faults, fault_keys, listed))
    state[:] = np.where(stuck > 0, stuck == 2, np.where(flips, 1 - state, state))


def cells_last(shape: Shape, step: int, drawn: Faults) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.uint8]]:
    """Return flipped bits, bool `[C, cells]`, and a code per cell: 0 if it works, 1 if stuck at 0, 2 if stuck at 1."""
    grids = (shape.batch, shape.height, shape.width, shape.channels)
    return drawn.flips(step, grids).reshape(-1, shape.channels).T, drawn.stuck(grids).reshape(-1)
