"""Damage: squares of cells that are zeroed in all channels on the way, as the paper damages its automata.

A square's corner is uniform over the grid's cells, drawn for each sample and step, and the square is clipped at the
border, on a torus too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from difflogic import prng

STREAM = 0x64616D61
"""`fold_in` data of damage ("dama"): of an epoch's training subkey, whose chain of splits the fire masks follow."""


@dataclass(frozen=True, eq=False)
class Damage:
    """Squares of `side` cells, zeroed before the CA steps `steps`: 0 is the start itself."""

    side: int
    steps: tuple[int, ...]
    corners: npt.NDArray[np.int64]
    """`[len(steps), B, 2]`: row and column of each sample's square."""

    def kept(self, index: int, height: int, width: int) -> npt.NDArray[np.bool_]:
        """`[B, H, W]`: False in the squares of `steps[index]`."""
        rows, columns = np.indices((height, width))
        row, column = self.corners[index, :, :, None, None].swapaxes(0, 1)
        below, beyond = rows - row, columns - column
        inside: npt.NDArray[np.bool_] = (below >= 0) & (below < self.side) & (beyond >= 0) & (beyond < self.side)
        return ~inside


def draw_corners(key: prng.Key, steps: int, batch: int, height: int, width: int) -> npt.NDArray[np.int64]:
    """`[steps, batch, 2]` of row and column: the high words of 32-bit words times the grid's sides."""
    words = prng.random_bits(prng.fold_in(key, STREAM), 2 * steps * batch).reshape(steps, batch, 2)
    corners: npt.NDArray[np.int64] = (
        words.astype(np.uint64) * np.array([height, width], dtype=np.uint64) >> 32
    ).astype(np.int64)
    return corners
