"""Draw images of cells: uint8 `[H, W, 3]`, one value for each cell, which difflogic draws as a square."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Picture = npt.NDArray[np.uint8]

PALETTE = np.array([[250, 250, 250], [30, 60, 120], [240, 170, 60], [180, 60, 50]], dtype=np.uint8)
"""Colours of two bits: neither, the first, the second, both."""
GAP = np.array([200, 200, 200], dtype=np.uint8)


def space_time(frames: npt.NDArray[np.uint8]) -> Picture:
    """Draw rows of cells `[N, T+1, W, 1 or 2]` next to each other, with time downwards and colours for bits."""
    values = np.arange(1, frames.shape[-1] + 1)
    parts = [PALETTE[(row * values).sum(-1)] for row in frames]
    gap = np.broadcast_to(GAP, (frames.shape[1], 1, 3))
    spaced = [column for part in parts for column in (gap, part)]
    return np.concatenate(spaced[1:], axis=1)
