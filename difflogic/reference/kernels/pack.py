"""Pack a soft batch of 0/1 grids into words. Reference implementation of `pack.wgsl`."""

import numpy as np

from difflogic.core import bits
from difflogic.engine.shape import Array, Shape


def pack(shape: Shape, state: Array, targets: Array, words: Array, hard_targets: Array, counts: Array) -> None:
    """Pack `state [C, cells]` of 0 and 1 into the last groups of `words [C, groups*H*W]`, and clear the counts.

    `targets [J, loss_channels, cells]` are packed likewise into `hard_targets [J, loss_channels, groups*H*W, 2]`.
    """
    sizes = (shape.batch, shape.height, shape.width)
    # The batch has separate groups, after those of the evaluation grids, since `hard_loss` counts by group.
    last = bits.pack_grids(np.moveaxis(state.reshape(-1, *sizes), 0, -1) > 0.5)
    words[:, -last.shape[1] :] = last
    pairs = bits.pack_targets(np.moveaxis(targets.reshape(*targets.shape[:2], *sizes), 1, -1))
    hard_targets[:, :, -pairs.shape[2] :] = pairs
    counts[:] = 0
