"""What the circuit sees as its target, on the screen before training."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from difflogic import raster
from difflogic.config import Config
from difflogic.train import pictures, tasks

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

OFF = (48, 48, 48)
"""Instead of black, so that the grid is seen on a black terminal."""
HALF_BLOCKS = " ▄▀█"
"""By upper and lower cell, as bits."""


def headline(config: Config) -> str:
    """The target in a sentence."""
    task = config.task
    if task.target == "rule":
        return f"Target: one generation of {task.rule if '/' in task.rule else 'a rule given as a table'}"
    bits = target_bits(config)
    used = len(np.unique(bits.reshape(-1, bits.shape[-1]), axis=0))
    size = f"{task.width} cells wide, {task.height} high"
    return f"Target: {task.target}, {size}, {bits.any(axis=-1).sum()} on, {used} colours"


def plain(config: Config) -> list[str]:
    """The picture in the characters of `difflogic.raster`; no lines for a rule."""
    return [] if config.task.target == "rule" else list(raster.encode(target_bits(config)))


def show(config: Config, console: Console) -> None:
    """Headline and picture on a terminal: in half blocks, coloured where it has colours."""
    console.print(headline(config), markup=False, highlight=False)
    if config.task.target == "rule":
        return
    if config.task.width > console.width:
        console.print("(wider than this terminal: see target.png in the run folder)", highlight=False)
    elif console.options.ascii_only:
        console.print("\n".join(plain(config)), markup=False, highlight=False)
    else:
        console.print(_blocks(target_bits(config), colored=console.color_system is not None and not console.no_color))


def target_bits(config: Config) -> npt.NDArray[np.uint8]:
    """`[H, W, n]`: the channels of a fixed target that a picture can show."""
    target = tasks.target(config.task)
    assert target is not None
    return target[..., : raster.MAX_BITS].astype(np.uint8)


def _blocks(bits: npt.NDArray[np.uint8], colored: bool) -> Text:
    """Two rows of cells in each line."""
    from rich.text import Text

    even = np.pad(bits, ((0, len(bits) % 2), (0, 0), (0, 0)))
    upper, lower = even[::2], even[1::2]
    if not colored:
        shapes = np.array(list(HALF_BLOCKS))[2 * upper.any(axis=-1) + lower.any(axis=-1)]
        return Text("\n".join(map("".join, shapes)))
    text = Text()
    for row, (above, below) in enumerate(zip(pictures.colors(upper), pictures.colors(lower), strict=True)):
        for one, two in zip(above, below, strict=True):
            text.append("▀", style=f"{_shade(one)} on {_shade(two)}")
        text.append("" if row == len(upper) - 1 else "\n")
    return text


def _shade(color: npt.NDArray[np.uint8]) -> str:
    red, green, blue = map(int, color) if color.any() else OFF
    return f"rgb({red},{green},{blue})"
