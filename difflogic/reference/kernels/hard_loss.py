"""Wrong values of a judged hard state are counted. Twin of `hard_loss.wgsl`."""

from __future__ import annotations

import numpy as np

from difflogic.core.bits import WORD
from difflogic.engine.shape import Array, Shape


def hard_loss(shape: Shape, samples: int, words: Array, hard_targets: Array, counts: Array) -> None:
    """`counts [groups, 2]`: wrong values, and the bits of the samples with any; `samples` in all groups together.

    Added to what earlier states of the rollout had. `words [C, groups*H*W]`, `hard_targets [loss_channels,
    groups*H*W]`; `shape.batch` counts groups of 32 samples.
    """
    last = words[: shape.loss_channels].reshape(shape.loss_channels, shape.batch, shape.cells_per_grid)
    # 33 samples in two groups: 32 bits of the first word count, one of the second, and what the others hold does not.
    present = np.clip(samples - WORD * np.arange(shape.batch), 0, WORD).astype(np.uint64)
    mask = ((np.uint64(1) << present) - np.uint64(1)).astype(np.uint32)
    wrong = (last ^ hard_targets.reshape(last.shape)) & mask[:, None]
    counts[:, 0] += np.bitwise_count(wrong).sum(axis=(0, 2), dtype=np.uint32)
    counts[:, 1] |= np.bitwise_or.reduce(wrong, axis=(0, 2))
