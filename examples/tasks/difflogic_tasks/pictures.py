"""Pictures of cells: uint8 `[H, W, 3]`, every cell a square of a few pixels."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Picture = npt.NDArray[np.uint8]

PALETTE = np.array([[250, 250, 250], [30, 60, 120], [240, 170, 60], [180, 60, 50]], dtype=np.uint8)
"""Of two bits: neither, the first, the second, both."""
GAP = np.array([200, 200, 200], dtype=np.uint8)


def enlarged(cells: Picture, scale: int = 12) -> Picture:
    """Every cell as a square."""
    return cells.repeat(scale, axis=0).repeat(scale, axis=1)


def space_time(film: npt.NDArray[np.uint8], scale: int = 12) -> Picture:
    """Rows of cells `[N, T+1, W, 1 or 2]` side by side, time downwards; bits have colours."""
    values = np.arange(1, film.shape[-1] + 1)
    parts = [enlarged(PALETTE[(each * values).sum(-1)], scale) for each in film]
    gap = np.broadcast_to(GAP, (parts[0].shape[0], scale // 2, 3))
    spaced = [part for each in parts for part in (gap, each)]
    return np.concatenate(spaced[1:], axis=1)
