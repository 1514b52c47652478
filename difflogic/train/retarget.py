"""Another target or start for a configuration, and what must change with it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from difflogic import raster, rules
from difflogic.config import MAX_BOARD_CELLS, MIN_SIDE, STARTS, Config
from difflogic.errors import ConfigError, UsageError
from difflogic.fields import hint, plain
from difflogic.train import picture_file, rule_file
from difflogic.train.picture_file import CHANNELS, Bits

Changes = dict[str, dict[str, Any]]
"""Fields by section, as `Config.from_dict` takes them."""


@dataclass(frozen=True)
class Wishes:
    """What a user wants instead; None: as it is."""

    target: Path | None = None
    """A picture file."""
    rule: str | None = None
    rule_table: Path | None = None
    start: str | None = None
    """One of STARTS but `picture`, or the name of a picture file."""
    colors: int | None = None
    size: tuple[int, int] | None = None
    """Width and height that pictures are made to fit into."""
    threshold: float | None = None
    padding: int = 0
    """Cells that are off, on each side of the target."""

    def check(self) -> None:
        """Raises UsageError for wishes that contradict each other, or come to nothing."""
        given = [name for name, value in (("--target", self.target), ("--rule", self.rule),
                                          ("--rule-table", self.rule_table)) if value is not None]  # fmt: skip
        if len(given) > 1:
            raise UsageError(f"There is one target: give {' or '.join(given)}, not both.")
        pictures = self.target is not None or (self.start is not None and self.start not in STARTS)
        for name, value in (("--colors", self.colors), ("--size", self.size), ("--threshold", self.threshold)):
            if value is not None and not pictures:
                raise UsageError(f"{name} is for pictures: give --target FILE or --start FILE with it.")
        if self.padding and self.target is None:
            raise UsageError("--padding surrounds a picture: give --target FILE with it.")


def changes(config: Config, wishes: Wishes, fixed: tuple[int, int] | None, channels: int) -> Changes:
    """What to change in `config`. `fixed`: height and width of a grid that must stay; `channels`: of a cell.

    Raises ConfigError, DataError or UsageError where a wish cannot come true.
    """
    wishes.check()
    changed: Changes = {"task": {}, "model": {}, "train": {}}
    grid = fixed or (config.task.height, config.task.width)
    loss_channels = config.task.loss_channels
    if wishes.target is not None:
        bits = _picture(wishes.target, wishes, channels, loss_channels)
        grid = _room(wishes, bits, fixed)
        loss_channels = bits.shape[-1]
        changed["task"] |= _picture_target(config, _centred(wishes.target, bits, grid))
    elif wishes.rule is not None or wishes.rule_table is not None:
        rule = rule_file.load(wishes.rule_table) if wishes.rule_table is not None else str(wishes.rule)
        rules.table(rule)
        _aim_at_rule(changed, config, rule, fixed)
    if wishes.start is not None:
        grid = tuple(changed["task"].get(name, side) for name, side in zip(("height", "width"), grid, strict=True))
        _begin_with(changed, wishes, grid, channels, loss_channels)
    return changed


def _picture_target(config: Config, bits: Bits) -> dict[str, Any]:
    height, width, loss_channels = bits.shape
    task = {
        "target": "picture",
        "picture": plain(raster.encode(bits)),
        "rule": "",
        "height": height,
        "width": width,
        "loss_channels": loss_channels,
    }
    return task | ({"start": "seed"} if config.task.start == "boards" else {})


def _aim_at_rule(changed: Changes, config: Config, rule: str, fixed: tuple[int, int] | None) -> None:
    """One synchronous step on a torus; where a cell is one bit, from all boards of 3x3, which hold every patch."""
    changed["task"]["rule"] = rule
    if config.task.target == "rule":
        return
    height, width = fixed or ((MIN_SIDE, MIN_SIDE) if config.model.channels == 1 else _grid(config))
    boards = config.model.channels == 1 and height * width <= MAX_BOARD_CELLS
    changed["task"] |= {
        "target": "rule",
        "picture": [],
        "start": "boards" if boards else "random",
        "start_picture": [],
        "height": height,
        "width": width,
        "steps": 1,
        "loss_channels": 1,
        "loss_steps": [],
        "damage_side": 0,
        "damage_steps": [],
    }
    changed["model"]["periodic"] = True
    changed["train"] |= {"fire_rate": 1.0, "pool": 0}


def _begin_with(changed: Changes, wishes: Wishes, grid: tuple[int, ...], channels: int, loss_channels: int) -> None:
    start = str(wishes.start)
    if start in STARTS and start != "picture":
        changed["task"] |= {"start": start, "start_picture": []}
        if start == "zeros":  # an empty torus looks the same from every cell, for ever
            changed["model"]["periodic"] = False
        return
    path = Path(start)
    if not path.suffix and not path.exists():
        words = [word for word in STARTS if word != "picture"]
        raise ConfigError(
            f"--start must be one of {', '.join(words)}, or a picture file, got {start!r}{hint(start, words)}."
        )
    bits = _centred(path, _picture(path, wishes, channels, loss_channels), (grid[0], grid[1]))
    changed["task"] |= {"start": "picture", "start_picture": plain(raster.encode(bits))}


def _picture(path: Path, wishes: Wishes, channels: int, loss_channels: int) -> Bits:
    """By default in as many colours as the loss channels carry, else in black and white."""
    usual = {needed: colors for colors, needed in CHANNELS.items()}.get(loss_channels, 2)
    colors = wishes.colors or usual
    if CHANNELS[colors] > channels:
        fitting = max(number for number, needed in CHANNELS.items() if needed <= channels)
        raise ConfigError(
            f"{colors} colours take {CHANNELS[colors]} channels, but a cell has {channels}: give --colors {fitting}, "
            "or a preset with more channels."
        )
    return picture_file.load(path, colors, wishes.size, wishes.threshold)


def _room(wishes: Wishes, bits: Bits, fixed: tuple[int, int] | None) -> tuple[int, int]:
    """Height and width of the grid for a target: what was asked for, or the picture's, and the padding around it."""
    if fixed is not None:
        if wishes.padding:
            raise UsageError("--padding makes the grid of the target's size, but the grid's size is given: drop one.")
        return fixed
    width, height = wishes.size or (bits.shape[1], bits.shape[0])
    sides = height + 2 * wishes.padding, width + 2 * wishes.padding
    if min(sides) < MIN_SIDE:
        raise ConfigError(
            f"A grid has at least {MIN_SIDE}x{MIN_SIDE} cells: put some around {wishes.target} with --padding 1."
        )
    return sides


def _centred(path: Path, bits: Bits, grid: tuple[int, int]) -> Bits:
    """With cells that are off around it. Raises ConfigError where it is larger than the grid."""
    (height, width), (rows, columns) = bits.shape[:2], grid
    if height > rows or width > columns:
        raise ConfigError(
            f"{path} is {width} cells wide and {height} high, but the grid is {columns} wide and {rows} high: "
            f"scale it down with --size {columns}x{rows}, or give a larger grid."
        )
    above, left = (rows - height) // 2, (columns - width) // 2
    return np.pad(bits, ((above, rows - height - above), (left, columns - width - left), (0, 0)))


def _grid(config: Config) -> tuple[int, int]:
    return config.task.height, config.task.width
