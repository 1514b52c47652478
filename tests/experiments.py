"""The circuits of the paper's five experiments, by the names of `wires_seed23.npz`."""

from __future__ import annotations

import numpy as np

from difflogic.config import ModelConfig, NetworkConfig


def _model(
    channels: int, kernels: int, perceive: tuple[int, ...], update: tuple[int, ...], periodic: bool
) -> ModelConfig:
    return ModelConfig(
        channels,
        kernels,
        NetworkConfig(perceive, ("first_kernel",) + ("unique",) * (len(perceive) - 2)),
        NetworkConfig(update, ("unique",) * (len(update) - 1)),
        periodic=periodic,
    )


MODELS = {
    "gol": _model(1, 16, (9, 8, 4, 2, 1), (17, *(128,) * 17, 64, 32, 16, 8, 4, 2, 1), periodic=True),
    "checkerboard": _model(8, 16, (9, 8, 4, 2), (264, *(256,) * 10, 128, 64, 32, 16, 8, 8), periodic=False),
    "checkerboard_async": _model(8, 16, (9, 8, 4, 2), (264, *(256,) * 14, 128, 64, 32, 16, 8, 8), periodic=False),
    "lizard": _model(128, 4, (9, 8, 4, 2, 1), (640, *(512,) * 8, 256, 128), periodic=True),
    "colored_g": _model(64, 4, (9, 8, 4, 2), (576, *(512,) * 8, 256, 128, 64), periodic=False),
}
GATES = {"gol": 2543, "checkerboard": 3040, "checkerboard_async": 4064, "lizard": 4540, "colored_g": 4600}


def checkerboard_target(height: int, width: int) -> np.ndarray:
    """float32 `[H, W, 1]`: squares of two cells, 0 in the corner."""
    rows, cols = np.arange(height)[:, None], np.arange(width)
    board: np.ndarray = ((cols // 2 + rows // 2) % 2)[..., None].astype(np.float32)
    return board
