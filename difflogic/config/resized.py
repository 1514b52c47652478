"""Configuration of an experiment on a grid of another size."""

from dataclasses import replace

from difflogic.config.schema import Config
from difflogic.config.task import TaskConfig
from difflogic.config.train import GrowthConfig
from difflogic.core import text_picture
from difflogic.errors import ConfigError


def resized(config: Config, height: int, width: int) -> Config:
    """Return the configuration for a grid of another size, without damage, faults and growth.

    Images are padded with 0 on all sides. If the size changes, the initial states `boards` become `random`. Raises
    ConfigError for a grid that is smaller than an image, or too small for the neighbourhood.
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
        flip=0.0,
        stuck_cells=0.0,
        stuck_gates=0.0,
        stuck_list=(),
    )
    # Growth belongs to training, and its sides may exceed the new grid: a side of 8 does not fit a grid of 3.
    return replace(config, task=wide, growth=GrowthConfig())


def _padded(name: str, rows: tuple[str, ...], height: int, width: int) -> tuple[str, ...]:
    """Pad an image so that its middle cell (h//2, w//2) is in the middle of the grid, at (H//2, W//2), like a seed."""
    if not rows:
        return rows
    if len(rows) > height or len(rows[0]) > width:
        raise ConfigError(
            f"The run's {name} image has {len(rows[0])}x{len(rows)} cells: the grid must be at least as large, "
            f"got {width}x{height}."
        )
    # An image of 4 rows on a grid of 9 has two blank rows above and three below, so that its row 2 becomes row 4.
    blank, above, left = text_picture.ALPHABET[0], height // 2 - len(rows) // 2, width // 2 - len(rows[0]) // 2
    inside = [blank * left + row + blank * (width - left - len(row)) for row in rows]
    return (*[blank * width] * above, *inside, *[blank * width] * (height - above - len(rows)))


def knows_larger_grids(task: TaskConfig) -> bool:
    """Return whether the task has a target on larger grids: a checkerboard, or an image grown from its middle."""
    return task.target == "checkerboard" or (task.target == "picture" and task.start in ("seed", "picture"))
