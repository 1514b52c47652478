"""Pack zeros and ones into words, in the three layouts that the package uses.

* Grids of several samples, 32 samples per word, for engines that evaluate hard circuits (`pack_grids`).
* Independent samples, 64 samples per word, for the evaluation of netlists (`pack_bits`).
* Bit planes of one large grid, 64 cells of a row per word, for simulations (`pack_planes`).

The first sample or cell is the lowest bit, and bits beyond the last are 0. For example, the samples 1, 0, 1, 1 are bits
0, 1, 2, 3 of their word, which is `1 + 4 + 8 = 13`.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Bits = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]
Planes = npt.NDArray[np.uint64]
"""Bit planes, uint64 `[H, C, words]`: bit `i` of word `j` in a row is the cell in column `64*j + i`."""

WORD = 32
"""Number of samples per word of `pack_grids`; WGSL has no 64-bit integers."""
LONG_WORD = 64
"""Number of samples per word of `pack_bits`, and number of cells per word of `pack_planes`."""
IGNORED = -(2.0**100)
"""Target value that marks values ignored by the loss. It is not NaN, since compilers may remove tests for NaN."""
ONES = np.uint64(0xFFFFFFFFFFFFFFFF)


def pack_grids(grids: Array) -> Array:
    """Pack 0/1 grids `[B, H, W, C]` into uint32 `[C, groups*H*W]`; bit `i` of group `g` is sample `32*g + i`."""
    # A batch of fewer than 32 samples is one group and uses only the lowest bits; the other bits stay 0.
    batch, height, width, channels = grids.shape
    groups, lanes = -(-batch // WORD), min(batch, WORD)
    bits = np.zeros((groups * lanes, height, width, channels), dtype=np.uint32)
    bits[:batch] = grids
    shifts = np.arange(lanes, dtype=np.uint32)[None, :, None, None, None]
    words = np.bitwise_or.reduce(bits.reshape(groups, lanes, height, width, channels) << shifts, axis=1)
    return np.ascontiguousarray(words.transpose(3, 0, 1, 2).reshape(channels, -1))


def pack_targets(targets: Array) -> Array:
    """Pack targets `[J, B, H, W, C]` into uint32 `[J, C, groups*H*W, 2]`: the values and a mask.

    The mask is 1 for values that the loss counts, and 0 for IGNORED values and for padding beyond the last sample.
    """
    return np.stack([np.stack([pack_grids(x > 0.5), pack_grids(x != IGNORED)], axis=-1) for x in targets])


def unpack_grids(words: Array, grid: tuple[int, ...]) -> Array:
    """Unpack the states `[..., C, groups*H*W]` of `pack_grids` to float32 `[..., *grid]`; `grid` is (B, H, W, C)."""
    batch, height, width, channels = grid
    lead = words.shape[:-2]
    # Each word is shifted by 0, 1, ... 31 along a new axis for the samples of a group.
    split = words.reshape(*lead, channels, -1, 1, height, width)
    shifts = np.arange(min(batch, WORD), dtype=np.uint32)[:, None, None]
    bits = (split >> shifts & np.uint32(1)).reshape(*lead, channels, -1, height, width)[..., :batch, :, :]
    return np.moveaxis(bits, -4, -1).astype(np.float32)


def pack_bits(bits: Bits) -> Words:
    """Pack 0/1 samples `[n, samples]` into uint64 `[n, ceil(samples/64)]`; bit `i` of word `w` is sample `64*w + i`."""
    padded = np.zeros((len(bits), -(-bits.shape[1] // LONG_WORD) * LONG_WORD), dtype=np.uint8)
    padded[:, : bits.shape[1]] = bits
    # Packing row by row would take ten times as long. Eight bytes are one word in little-endian order, independent
    # of the byte order of the machine.
    packed = np.packbits(padded.reshape(-1), bitorder="little")
    return packed.view("<u8").astype(np.uint64, copy=False).reshape(len(bits), -1)


def unpack_bits(words: Words, samples: int) -> Bits:
    """Unpack words packed by `pack_bits` to 0/1 samples uint8 `[n, samples]`."""
    as_bytes = np.ascontiguousarray(words.astype("<u8", copy=False)).view(np.uint8)
    return np.unpackbits(as_bytes, axis=1, count=samples, bitorder="little")


def pack_planes(grid: Bits) -> Planes:
    """Pack 0/1 cells uint8 `[H, W, C]` into bit planes uint64 `[H, C, words]`."""
    height, width, channels = grid.shape
    rows = np.ascontiguousarray(grid.transpose(0, 2, 1)).reshape(-1, width)
    return pack_bits(rows).reshape(height, channels, -1)


def unpack_planes(planes: Planes, width: int) -> Bits:
    """Unpack bit planes of `width` columns to cells uint8 `[H, W, C]`."""
    height, channels, words = planes.shape
    bits = unpack_bits(planes.reshape(-1, words), width).reshape(height, channels, width)
    return np.ascontiguousarray(bits.transpose(0, 2, 1))


def words_per_row(width: int) -> int:
    """Return the number of 64-bit words per row of `width` cells."""
    return -(-width // LONG_WORD)


def last_word_mask(width: int) -> np.uint64:
    """Return the mask of the bits in a row's last word that are cells and not padding."""
    return ONES >> np.uint64(-width % LONG_WORD)


def population(planes: Planes) -> list[int]:
    """Return the number of living cells (ones) in each channel."""
    counts: list[int] = np.bitwise_count(planes).sum(axis=(0, 2), dtype=np.int64).tolist()
    return counts
