"""A hard state's squares are zeroed, each sample's bits by its own. Twin of `hard_damage.wgsl`."""

import numpy as np

from difflogic.core.bits import WORD
from difflogic.engine.shape import Array, Shape
from difflogic.reference.kernels.damage import squares


def hard_damage(shape: Shape, mark: int, corners: Array, words: Array) -> None:
    """`words [C, groups*H*W]` of the `mark`-th damage step, in place; `corners [D, samples, 2]`."""
    zeroed = squares(shape, corners[mark])
    samples = np.zeros((-(-len(zeroed) // WORD) * WORD, shape.cells_per_grid), dtype=np.uint32)
    samples[: len(zeroed)] = zeroed
    shifts = np.arange(WORD, dtype=np.uint32)[:, None]
    # Sample i of a group is bit i of its words; the bits of the samples that are hit are cleared in all channels.
    hit = np.bitwise_or.reduce(samples.reshape(-1, WORD, shape.cells_per_grid) << shifts, axis=1)
    words &= ~hit.reshape(-1)
