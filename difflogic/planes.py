"""A grid as bit planes: 64 cells of a row in a word.

Planes are uint64 `[H, C, words]`: bit `i` of word `j` is the cell in column `64*j + i`; bits beyond the last column
are 0.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from difflogic.netlist import WORD, Bits, pack_bits, unpack_bits

Planes = npt.NDArray[np.uint64]

ONES = np.uint64(0xFFFFFFFFFFFFFFFF)


def words_of(width: int) -> int:
    """Words of a row of so many cells."""
    return -(-width // WORD)


def last_word(width: int) -> np.uint64:
    """The bits of a row's last word that are cells."""
    return ONES >> np.uint64(-width % WORD)


def pack(grid: Bits) -> Planes:
    """Planes `[H, C, words]` of 0/1 cells uint8 `[H, W, C]`."""
    height, width, channels = grid.shape
    rows = np.ascontiguousarray(grid.transpose(0, 2, 1)).reshape(-1, width)
    return pack_bits(rows).reshape(height, channels, -1)


def unpack(planes: Planes, width: int) -> Bits:
    """The inverse of `pack`: uint8 `[H, W, C]`."""
    height, channels, words = planes.shape
    bits = unpack_bits(planes.reshape(-1, words), width).reshape(height, channels, width)
    return np.ascontiguousarray(bits.transpose(0, 2, 1))


def population(planes: Planes) -> list[int]:
    """How many cells are 1, by channel."""
    counts: list[int] = np.bitwise_count(planes).sum(axis=(0, 2), dtype=np.int64).tolist()
    return counts
