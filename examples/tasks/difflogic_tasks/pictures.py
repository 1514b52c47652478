"""Pictures of cells: uint8 `[H, W, 3]`, a value for each cell, which difflogic draws as squares."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Picture = npt.NDArray[np.uint8]

PALETTE = np.array([[250, 250, 250], [30, 60, 120], [240, 170, 60], [180, 60, 50]], dtype=np.uint8)
"""Of two bits: neither, the first, the second, both."""
GAP = np.array([200, 200, 200], dtype=np.uint8)


def space_time(film: npt.NDArray[np.uint8]) -> Picture:
    """Rows of cells `[N, T+1, W, 1 or 2]` side by side, time downwards; bits have colours."""
    values = np.arange(1, film.shape[-1] + 1)
    parts = [PALETTE[(each * values).sum(-1)] for each in film]
    gap = np.broadcast_to(GAP, (film.shape[1], 1, 3))
    spaced = [part for each in parts for part in (gap, each)]
    return np.concatenate(spaced[1:], axis=1)
