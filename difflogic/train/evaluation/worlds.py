"""A task on other grids than its own: fresh starts and targets of any size."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from difflogic import prng, raster, starts
from difflogic.config import Config, TaskConfig
from difflogic.errors import ConfigError
from difflogic.train import tasks

Bits = npt.NDArray[np.uint8]

START_STREAM = 0x6576616C
"""`fold_in` data of the starts of an evaluation ("eval"): neither training nor its probes draw from it."""


def resized(config: Config, height: int, width: int) -> Config:
    """The same experiment on another grid, without its damage; a picture lies in the middle, with 0 around it.

    Where the start is one of all boards, it becomes any board. Raises ConfigError for a grid below 3x3, or smaller
    than a picture.
    """
    task, same = config.task, (height, width) == (config.task.height, config.task.width)
    wide = replace(
        task,
        height=height,
        width=width,
        start="random" if task.start == "boards" and not same else task.start,
        picture=_padded("target", task.picture, height, width),
        start_picture=_padded("start", task.start_picture, height, width),
        damage_side=0,
        damage_steps=(),
    )
    return replace(config, task=wide)


def _padded(name: str, rows: tuple[str, ...], height: int, width: int) -> tuple[str, ...]:
    """So that the picture's cell (h//2, w//2) is the grid's (H//2, W//2), where a seed lies."""
    if not rows:
        return rows
    if len(rows) > height or len(rows[0]) > width:
        raise ConfigError(
            f"The run's {name} picture has {len(rows)}x{len(rows[0])} cells: the grid must be at least as large, "
            f"got {height}x{width}."
        )
    blank, above, left = raster.ALPHABET[0], height // 2 - len(rows) // 2, width // 2 - len(rows[0]) // 2
    inside = [blank * left + row + blank * (width - left - len(row)) for row in rows]
    return (*[blank * width] * above, *inside, *[blank * width] * (height - above - len(rows)))


def fresh_key(config: Config) -> prng.Key:
    """Where the random numbers of a run's evaluation begin."""
    return prng.fold_in(prng.key_from_seed(config.seed), START_STREAM)


def fresh(config: Config, count: int, key: prng.Key) -> Bits:
    """`[count, H, W, C]`, 0 or 1: as training would start, drawn from `key` where it draws."""
    task = config.task
    shape = (count, task.height, task.width, config.model.channels)
    return starts.draw(task.start, key, shape, tasks.start(config))


def target(task: TaskConfig) -> Bits:
    """`[H, W, loss_channels]` of a task whose target is the same for every start."""
    found = tasks.target(task)
    assert found is not None
    return found.astype(np.uint8)


def knows_larger_grids(task: TaskConfig) -> bool:
    """True where the task says what should be on a larger grid: a board, or a picture that grows from its middle.

    What grows from zeros takes its place from the border, and what grows from noise has none.
    """
    return task.target == "checkerboard" or (task.target == "picture" and task.start in ("seed", "picture"))
