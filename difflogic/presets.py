"""The paper's experiments as data, and by name.

Values: the authors' notebook (`diffLogic_CA.ipynb`), one hyperparameter dict per experiment.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from difflogic.config import Config, ModelConfig, NetworkConfig, TaskConfig, TrainConfig
from difflogic.drawings import LETTER_G, LIZARD
from difflogic.errors import ConfigError
from difflogic.fields import hint


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


def checkerboard_async() -> Config:
    """The same board on 14x14 in 50 asynchronous steps, in each of which a cell is updated with probability 0.6."""
    return Config(
        name="checkerboard-async",
        model=ModelConfig(
            channels=8,
            kernels=16,
            perceive=_perceive(9, 8, 4, 2),
            update=_update(264, *(256,) * 14, 128, 64, 32, 16, 8, 8),
        ),
        task=TaskConfig(target="checkerboard", height=14, width=14, steps=50),
        train=TrainConfig(epochs=800, batch=1, fire_rate=0.6),
    )


def game_of_life() -> Config:
    """Conway's rule, learned from its 512 neighbourhoods: boards of a 3x3 torus, one step."""
    return Config(
        name="game-of-life",
        model=ModelConfig(
            channels=1,
            kernels=16,
            perceive=_perceive(9, 8, 4, 2, 1),
            update=_update(17, *(128,) * 17, 64, 32, 16, 8, 4, 2, 1),
            periodic=True,
        ),
        task=TaskConfig(target="rule", rule="B3/S23", start="boards", height=3, width=3, steps=1),
        train=TrainConfig(epochs=3000, batch=20),
    )


def lizard(picture: tuple[str, ...] = LIZARD) -> Config:
    """A 20x20 outline grown in 12 steps from a single cell on a torus; `picture` as in `difflogic.raster`."""
    return Config(
        name="lizard",
        model=ModelConfig(
            channels=128,
            kernels=4,
            perceive=_perceive(9, 8, 4, 2, 1),
            update=_update(640, *(512,) * 8, 256, 128),
            periodic=True,
        ),
        task=TaskConfig(target="picture", picture=picture, start="seed", height=20, width=20, steps=12),
        train=TrainConfig(epochs=3500, batch=1, lr=0.06),
    )


def colored_g(picture: tuple[str, ...] = LETTER_G) -> Config:
    """A 16x16 letter in eight colours grown in 15 steps from nothing but the border; `picture` as in `raster`."""
    return Config(
        name="colored-g",
        model=ModelConfig(
            channels=64,
            kernels=4,
            perceive=_perceive(9, 8, 4, 2),
            update=_update(576, *(512,) * 8, 256, 128, 64),
        ),
        task=TaskConfig(
            target="picture", picture=picture, start="zeros", height=16, width=16, steps=15, loss_channels=3
        ),
        train=TrainConfig(epochs=3000, batch=1, lr=0.06),
    )


@dataclass(frozen=True)
class Preset:
    """A configuration that has a name."""

    make: Callable[[], Config]
    about: str


PRESETS = {
    "game-of-life": Preset(game_of_life, "Conway's rule, from all neighbourhoods"),
    "checkerboard": Preset(checkerboard, "a board, from noise"),
    "checkerboard-small": Preset(lambda: checkerboard(small=True), "the same, with half of the gates"),
    "checkerboard-async": Preset(checkerboard_async, "the same, each step updating a part of the cells"),
    "lizard": Preset(lizard, "a picture, from one cell on a torus"),
    "colored-g": Preset(colored_g, "a letter in colours, from nothing but the border"),
}
"""By the names that `difflogic train` takes; each is its configuration's own."""


def get(name: str) -> Config:
    """The preset of this name. Raises ConfigError, with the nearest name, where there is none."""
    if name not in PRESETS:
        raise ConfigError(f"There is no preset {name!r}{hint(name, PRESETS)}: expected one of {', '.join(PRESETS)}.")
    return PRESETS[name].make()
