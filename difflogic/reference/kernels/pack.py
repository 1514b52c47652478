"""A soft batch of 0/1 grids as words. Twin of `pack.wgsl`."""

from __future__ import annotations

from difflogic.core import bits
from difflogic.engine.shape import Array, Shape


def pack(shape: Shape, state: Array, targets: Array, words: Array, hard_targets: Array, counts: Array) -> None:
    """`state [C, cells]` of 0 and 1 -> the last groups of `words [C, groups*H*W]`; clears the counts.

    `targets [loss_channels, cells]` -> those of `hard_targets [loss_channels, groups*H*W]`.
    """
    for values, packed in ((state, words), (targets, hard_targets)):
        grids = (values.T > 0.5).reshape(shape.batch, shape.height, shape.width, len(values))
        # The batch fills groups of its own, behind the probes': `hard_loss` counts both apart.
        last = bits.pack_grids(grids)
        packed[:, -last.shape[1] :] = last
    counts[:] = 0
