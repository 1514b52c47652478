"""The circuits of the paper's five experiments, by the names of `wires_seed23.npz`."""

import numpy as np

from difflogic.config import presets

BLANK = {side: ("." * side,) * side for side in (16, 20)}
"""Blank images by side: an image does not change a circuit."""
MODELS = {
    "gol": presets.game_of_life().model,
    "checkerboard": presets.checkerboard().model,
    "checkerboard_async": presets.checkerboard_async().model,
    "lizard": presets.lizard(BLANK[20]).model,
    "colored_g": presets.colored_g(BLANK[16]).model,
}
GATES = {"gol": 2543, "checkerboard": 3040, "checkerboard_async": 4064, "lizard": 4540, "colored_g": 4600}


def checkerboard_target(height: int, width: int) -> np.ndarray:
    """float32 `[H, W, 1]`: squares of two cells, 0 in the corner."""
    rows, cols = np.arange(height)[:, None], np.arange(width)
    board: np.ndarray = ((cols // 2 + rows // 2) % 2)[..., None].astype(np.float32)
    return board
