"""Count the mismatches of an evaluated hard state. Reference implementation of `hard_loss.wgsl`."""

import numpy as np

from difflogic.engine.shape import Array, Shape


def hard_loss(shape: Shape, mark: int, words: Array, hard_targets: Array, counts: Array) -> None:
    """Add the mismatches after evaluated step number `mark` to `counts [groups, 2]`: number, and a bit per sample.

    `hard_targets [J, loss_channels, groups*H*W, 2]` are values and a mask of the values with a loss; `shape.batch`
    counts groups of 32 samples. The bit is 1 for a sample with mismatches. `words [C, groups*H*W]` are the state.
    """
    values, counted = np.moveaxis(hard_targets[mark % shape.targets], -1, 0)
    wrong = (words[: shape.loss_channels] ^ values) & counted
    wrong = wrong.reshape(shape.loss_channels, shape.batch, shape.cells_per_grid)
    counts[:, 0] += np.bitwise_count(wrong).sum(axis=(0, 2), dtype=np.uint32)
    counts[:, 1] |= np.bitwise_or.reduce(wrong, axis=(0, 2))
