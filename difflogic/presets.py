"""The paper's experiments as data.

Values: the authors' notebook (`diffLogic_CA.ipynb`), one hyperparameter dict per experiment.
"""

from __future__ import annotations

from difflogic.config import Config, ModelConfig, NetworkConfig, TaskConfig, TrainConfig


def _perceive(*widths: int) -> NetworkConfig:
    return NetworkConfig(widths, ("first_kernel",) + ("unique",) * (len(widths) - 2))


def _update(*widths: int) -> NetworkConfig:
    return NetworkConfig(widths, ("unique",) * (len(widths) - 1))


def checkerboard(small: bool = False) -> Config:
    """A 16x16 checkerboard of 2x2 squares grown from noise in 20 steps: 3040 gates, `small` 1496.

    The start is noise in all 8 channels; after 20 synchronous steps channel 0 should show the board.
    """
    body = (256,) * (4 if small else 10)
    tail = (128, 64, 32, 16, 8) if small else (128, 64, 32, 16, 8, 8)
    return Config(
        name="checkerboard-small" if small else "checkerboard",
        model=ModelConfig(
            channels=8,
            kernels=16,
            perceive=_perceive(9, 8, 4, 2),
            update=_update(264, *body, *tail),
        ),
        task=TaskConfig(target="checkerboard", height=16, width=16, steps=20),
        train=TrainConfig(epochs=500, batch=2),
    )
