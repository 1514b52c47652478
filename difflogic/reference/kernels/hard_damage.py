"""Set squares of a hard state to zero, in each sample's bits. Reference implementation of `hard_damage.wgsl`."""

import numpy as np

from difflogic.core.bits import WORD
from difflogic.engine.shape import Array, Shape
from difflogic.reference.kernels.damage import squares


def hard_damage(shape: Shape, mark: int, corners: Array, words: Array) -> None:
    """Zero the squares of damage number `mark` in `words [C, groups*H*W]`, in place; `corners [D, samples, 2]`."""
    zeroed = squares(shape, corners[mark])
    samples = np.zeros((-(-len(zeroed) // WORD) * WORD, shape.cells_per_grid), dtype=np.uint32)
    samples[: len(zeroed)] = zeroed
    shifts = np.arange(WORD, dtype=np.uint32)[:, None]
    # Sample i of a group is bit i of its words; in a sample's square its bits are cleared in all channels.
    hit = np.bitwise_or.reduce(samples.reshape(-1, WORD, shape.cells_per_grid) << shifts, axis=1)
    words &= ~hit.reshape(-1)
