"""Presets of automata: the paper's experiments, from the authors' `diffLogic_CA.ipynb`, and small experiments."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from difflogic.config import agent_presets, registered
from difflogic.config.dataset import Dataset
from difflogic.config.fields import hint
from difflogic.config.model import ModelConfig, layered
from difflogic.config.schema import Config
from difflogic.config.task import DataConfig, TaskConfig
from difflogic.config.train import HardeningConfig, InitialConfig, OptimizerConfig, TrainConfig
from difflogic.errors import ConfigError

# Images in the characters of `difflogic.core.text_picture`. They have the same number of ones as the paper's images,
# so that training costs the same, but different pixels.

LIZARD = (
    "....................",
    "....111.............",
    "....111.............",
    "...11111.111........",
    "...11111.111........",
    "....1111..1.........",
    "....1111.11....11...",
    ".....111111...111...",
    "....11111111.111....",
    "...11.11111111......",
    "....1111111111......",
    "........111111......",
    "........1111111.....",
    ".........111111.....",
    ".......1111.111.....",
    ".......111..111.....",
    ".............11.11..",
    ".............111.11.",
    "..............1111..",
    "....................",
)
"""Lizard of 20x20 cells with 120 ones, like the paper's. Origin: U+1F98E of the font Noto Color Emoji 2.042, SIL Open
Font License 1.1, scaled, with eight cells changed so that the paper's recipe solves it at seed 23."""

LETTER_G = (
    "................",
    "...1111111111...",
    "...1111111111...",
    "...1111111111...",
    "..33............",
    "..33............",
    "..33............",
    "..33...4444444..",
    "..33...4444444..",
    "..33...4444444..",
    "..33.......444..",
    "..33.......444..",
    "...2222222222...",
    "...2222222222...",
    "................",
    "................",
)
"""Letter G of 16x16 cells, with 46, 36 and 27 ones in red, green and blue like the paper's, drawn for this project."""

HEART = (
    "..........",
    ".11...11..",
    "1111.1111.",
    "111111111.",
    "111111111.",
    ".1111111..",
    "..11111...",
    "...111....",
    "....1.....",
    "..........",
)
"""Heart of 10x10 cells with 46 ones, not from the paper."""


PERCEIVE = (9, 8, 4, 2)
"""Widths of the notebook's perception kernels; some have a further layer of one gate."""


def checkerboard(small: bool = False) -> Config:
    """Return the preset that forms a 16x16 checkerboard from noise in 20 steps, with 3040 gates, or 1496 if `small`."""
    # Wide layers mix the 264 inputs, narrow ones reduce them to the 8 bits of the new cell.
    hidden = (*(256,) * (4 if small else 10), 128, 64, 32, 16, *(() if small else (8,)))
    return Config(
        name="checkerboard-small" if small else "checkerboard",
        model=layered(8, 16, PERCEIVE, hidden),
        task=TaskConfig(target="checkerboard", height=16, width=16, steps=20),
        train=TrainConfig(epochs=500, batch=2),
    )


def checkerboard_async() -> Config:
    """Return the preset of a 14x14 checkerboard in 50 steps; each step updates each cell with probability 0.6."""
    return Config(
        name="checkerboard-async",
        model=layered(8, 16, PERCEIVE, (*(256,) * 14, 128, 64, 32, 16, 8)),
        task=TaskConfig(target="checkerboard", height=14, width=14, steps=50),
        train=TrainConfig(epochs=800, batch=1, fire_rate=0.6),
    )


def game_of_life() -> Config:
    """Return the preset that learns one step of Conway's rule on all 512 boards of a 3x3 torus."""
    return Config(
        name="game-of-life",
        model=layered(1, 16, (*PERCEIVE, 1), (*(128,) * 17, 64, 32, 16, 8, 4, 2), periodic=True),
        task=TaskConfig(target="rule", rule="B3/S23", start="boards", height=3, width=3, steps=1),
        train=TrainConfig(epochs=3000, batch=20),
    )


def lizard(picture: tuple[str, ...] = LIZARD) -> Config:
    """Return the preset that grows a 20x20 image from a cell on a torus in 12 steps; `picture`: see `text_picture`."""
    return Config(
        name="lizard",
        model=layered(128, 4, (*PERCEIVE, 1), (*(512,) * 8, 256), periodic=True),
        task=TaskConfig(target="picture", picture=picture, start="seed", height=20, width=20, steps=12),
        train=TrainConfig(epochs=3500, batch=1),
        optimizer=OptimizerConfig(lr=0.06),
    )


def colored_g(picture: tuple[str, ...] = LETTER_G) -> Config:
    """Return the preset that grows a 16x16 image of eight colours from its border in 15 steps; see `lizard`."""
    return Config(
        name="colored-g",
        model=layered(64, 4, PERCEIVE, (*(512,) * 8, 256, 128)),
        task=TaskConfig(
            target="picture", picture=picture, start="zeros", height=16, width=16, steps=15, loss_channels=3
        ),
        train=TrainConfig(epochs=3000, batch=1),
        optimizer=OptimizerConfig(lr=0.06),
    )


def checkerboard_healing() -> Config:
    """Return the preset of a small checkerboard in 36 steps, with an 8x8 square set to 0 after 20 steps."""
    return checkerboard(small=True).with_(
        name="checkerboard-healing",
        model={"wiring_per_kernel": True},
        task={"steps": 36, "damage_side": 8, "damage_steps": [20]},
        train={"epochs": 1000, "batch": 1},
        optimizer={"lr": 0.1, "epsilon": 1e-6},
        initial={"logit": 6.0, "narrow_drop": 3.0},
        hardening={"share": 0.9, "begin": 160, "end": 880},
    )


def _heart(name: str, steps: int, **task: Any) -> Config:
    """Return a preset of a heart with 552 gates, and with the wiring and training of the recipe `robust`."""
    return Config(
        name=name,
        model=layered(16, 4, PERCEIVE, (128, 128, 128, 64, 32), wiring_per_kernel=True),
        task=TaskConfig(target="picture", picture=HEART, start="zeros", height=10, width=10, steps=steps, **task),
        train=TrainConfig(epochs=2000, batch=1),
        optimizer=OptimizerConfig(lr=0.06),
        initial=InitialConfig(logit=6.0),
        hardening=HardeningConfig(share=0.8, begin=240, end=1360),
    )


def heart_persistent() -> Config:
    """Return the preset of a 10x10 heart, stable after step 12 since it is also trained from earlier last states."""
    return _heart("heart-persistent", 12).with_(train={"batch": 4}, pool={"size": 16, "reset": 1})


def heart_steady() -> Config:
    """Return the preset of a 10x10 heart, stable since the loss compares it after steps 12, 15 and 18."""
    return _heart("heart-steady", 18, loss_steps=(12, 15, 18))


def image() -> Config:
    """Return the preset of a heart kept stable by a clock and a latch; its 1048 gates suit images up to 24x24 cells."""
    model = layered(32, 4, PERCEIVE, (256, 256, 256, 128, 64))
    task = TaskConfig(target="picture", picture=HEART, start="zeros", height=10, width=10, steps=12, stays=True)
    return Config("image", model, task, TrainConfig(epochs=2000, batch=1))


SAMPLED_CELLS = 4096
"""Maximum number of cells in a batch of samples, unless a single sample has more."""


def model_of_samples(samples: Dataset) -> ModelConfig:
    """Return the default shape of a circuit for samples.

    For one channel, it is that of the preset game-of-life. For several, perception has only two kernels of one layer,
    since it reads each channel separately; an update network of twice the width combines the channels.
    """
    channels = max(samples.x.shape[-1], samples.y.shape[-1])
    kernels, perceive, wide, deep = (16, (*PERCEIVE, 1), 128, 17) if channels == 1 else (2, PERCEIVE[:2], 256, 8)
    inputs = channels * (1 + kernels * perceive[-1])
    width = max(wide, 1 << ((inputs + 1) // 2 - 1).bit_length())
    narrow = [1 << bits for bits in reversed(range(width.bit_length() - 1)) if 1 << bits > channels]
    neighbourhood = "line" if samples.x.shape[1] == 1 else "moore"
    return layered(channels, kernels, perceive, (*(width,) * deep, *narrow), neighbourhood=neighbourhood)


def of_samples(samples: Dataset) -> Config:
    """Return the default configuration for samples, on a torus unless they contradict each other only on a torus."""
    fields, model, steps = samples.fields(), model_of_samples(samples), samples.single_steps() or samples
    at_odds = [steps.contradiction(periodic, model.neighbourhood) for periodic in (True, False)]
    return Config(
        name="data",
        model=replace(model, periodic=not at_odds[0] or bool(at_odds[1])),
        task=TaskConfig(**fields["task"] | {"start": "zeros", "loss_steps": tuple(fields["task"]["loss_steps"])}),
        data=DataConfig(**fields["data"] | ({"held_out": 0.0} if len(samples) == 1 else {})),
        train=TrainConfig(epochs=3000, batch=min(16, max(1, SAMPLED_CELLS // math.prod(samples.x.shape[1:3])))),
    )


@dataclass(frozen=True)
class Preset:
    """Preset of automata: a function that makes its configuration, and a description."""

    make: Callable[[], Config]
    about: str


PRESETS = {
    "game-of-life": Preset(game_of_life, "Conway's rule, learned from all 3x3 boards"),
    "checkerboard": Preset(checkerboard, "a board, from noise"),
    "checkerboard-small": Preset(
        lambda: checkerboard(small=True), "a board, from noise, with half of checkerboard's gates"
    ),
    "checkerboard-async": Preset(checkerboard_async, "a board, each step updating random cells"),
    "lizard": Preset(lizard, "an image, from one cell on a torus"),
    "colored-g": Preset(colored_g, "a letter in colours, from the border of an empty grid"),
    "checkerboard-healing": Preset(checkerboard_healing, "a board, repaired after damage"),
    "heart-persistent": Preset(heart_persistent, "an image that stays, trained with a sample pool"),
    "heart-steady": Preset(heart_steady, "an image that stays, trained at several steps"),
    "image": Preset(image, "your image: it stays, and returns after damage"),
}
"""Mapping from names, which `difflogic train` takes, to presets of automata."""


def get(name: str) -> Config:
    """Return the configuration of the preset or task in Python `name`. Raises ConfigError or FaultyTaskError."""
    if registered.is_task(name):
        return registered.find(name).config()
    if name in agent_presets.PRESETS:
        raise ConfigError(f"The preset {name} trains agents: use `difflogic train-policy {name}`.")
    if name not in PRESETS:
        raise ConfigError(f"Unknown preset {name!r}{hint(name, PRESETS)}: expected one of {', '.join(PRESETS)}.")
    return PRESETS[name].make()
