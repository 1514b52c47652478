"""Hard states as words: 32 samples per uint32, bit `i` of group `g` is sample `32*g + i`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

WORD = 32
"""Samples per word."""


def pack(grids: Array) -> Array:
    """0/1 grids `[B, H, W, C]` -> uint32 words `[C, groups*H*W]`; unused high bits are 0."""
    batch, height, width, channels = grids.shape
    groups, lanes = -(-batch // WORD), min(batch, WORD)
    bits = np.zeros((groups * lanes, height, width, channels), dtype=np.uint32)
    bits[:batch] = grids
    shifts = np.arange(lanes, dtype=np.uint32)[None, :, None, None, None]
    words = np.bitwise_or.reduce(bits.reshape(groups, lanes, height, width, channels) << shifts, axis=1)
    return np.ascontiguousarray(words.transpose(3, 0, 1, 2).reshape(channels, -1))


def unpack(words: Array, grid: tuple[int, ...]) -> Array:
    """The inverse of `pack` for states `[..., C, groups*H*W]`: float32 `[..., B, H, W, C]`."""
    batch, height, width, channels = grid
    lead = words.shape[:-2]
    split = words.reshape(*lead, channels, -1, 1, height, width)
    shifts = np.arange(min(batch, WORD), dtype=np.uint32)[:, None, None]
    bits = (split >> shifts & np.uint32(1)).reshape(*lead, channels, -1, height, width)[..., :batch, :, :]
    return np.moveaxis(bits, -4, -1).astype(np.float32)
