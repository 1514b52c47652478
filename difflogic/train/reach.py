"""Reachability of a target: whether any circuit could reach it from the initial state in the configured steps.

Cells with equal receptive fields are in the same state, whatever the circuit. So cells are partitioned into classes: at
first by their own bits, then in each step by the classes of their neighbours, with a separate class for the outside. A
target that differs within a class cannot be reached. Example: from one cell on a torus, T steps distinguish
(2T+1)x(2T+1) cells; all other cells are in one class.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic.config.schema import Config
from difflogic.core import wiring
from difflogic.engine import job
from difflogic.errors import ConfigError

MOST_CELLS = 1 << 15
"""Maximum number of cells of a tested grid; the test of a larger grid would take too long."""

Classes = npt.NDArray[np.int64]


@lru_cache(64)  # the form of a page requests it with each change
def notice(config: Config) -> str | None:
    """Return a warning if the target needs more steps, or None. Raises ConfigError if no number of steps suffices."""
    task = config.task
    target = _target(config)
    if target is None:
        return None
    first = task.judged_steps[0]
    partitions, wrong = _partitions(config), 0
    for classes in islice(partitions, first + 1):
        wrong = _wrong(classes, target)
        if not wrong:
            return None
    enough = next((step for step, classes in enumerate(partitions, first + 1) if not _wrong(classes, target)), None)
    if enough is None:
        raise ConfigError(_refusal(config))
    cells = f"{wrong} of the {target.size} cells of the target"
    field, cost = "the first of task.loss_steps", ""
    if first == task.steps:
        field, cost = "task.steps", f", with which an epoch takes {enough / first:.2g} times as long"
    return (
        f"In {first} steps a signal travels {_distance(config, first)}, so at least {cells} stay wrong, whatever is "
        f"learned: {field} should be at least {enough}{cost}."
    )


def _target(config: Config) -> Classes | None:
    """Return the target `[H, W]` with a number for each colour, or None if the task is not tested."""
    task = config.task
    target = job.target(task)
    if target is None or job.start(config) is None or task.height * task.width > MOST_CELLS:
        return None
    return _kinds(target.reshape(-1, task.loss_channels)).reshape(task.height, task.width)


def _partitions(config: Config) -> Iterator[Classes]:
    """Yield the classes of cells `[H, W]` after 0, 1, ... steps, until a step splits no class."""
    start = job.start(config)
    assert start is not None
    height, width, channels = start.shape
    cells = wiring.NEIGHBOURHOODS[config.model.neighbourhood]
    # Columns of the neighbourhood in the row above, the row of the cell and the row below: at most three each.
    read = [[f % 3 for f in cells if f // 3 == dy] for dy in range(3)]
    kinds = _kinds(np.concatenate([start.reshape(-1, channels), np.zeros((1, channels), np.uint8)]))
    classes, outside, before = kinds[:-1].reshape(height, width), kinds[-1], 0
    yield classes
    while True:
        around: dict[str, Any] = {"mode": "wrap"} if config.model.periodic else {"constant_values": outside}
        wide = np.pad(classes, 1, **around)
        # Two passes number the classes of a neighbourhood: the first combines each row, the second the three rows.
        rows = (
            _numbered(wide[dy : dy + height, dx : dx + width] for dx in columns)
            for dy, columns in enumerate(read)
            if columns
        )
        classes = _numbered(rows)
        yield classes
        # From the second step on, the class of the outside is -1, since classes of cells count from 0.
        outside, count = np.int64(-1), int(classes.max()) + 1
        # Classes are split and never merged. If a step splits no class, no later step does.
        if count == before:
            return
        before = count


def _kinds(cells: npt.NDArray[np.floating | np.uint8]) -> Classes:
    """Return a number for each row of the bits `[N, n]`, equal for equal rows; numbers count from 0."""
    kinds: Classes = np.unique(np.packbits(cells != 0, axis=1), axis=0, return_inverse=True)[1].astype(np.int64)
    return kinds.reshape(-1)


def _numbered(classes: Iterable[Classes]) -> Classes:
    """Return a number from 0 for each cell's combination of up to three `classes`, whose minimum may be -1."""
    digits = list(classes)
    count = max(int(digit.max()) for digit in digits) + 2
    # Classes are digits of one number: with classes -1 to 3, count is 5, and (-1, 0, 3) becomes 0*25 + 1*5 + 4.
    together = np.zeros_like(digits[0])
    for digit in digits:
        together = together * count + digit + 1
    numbers: Classes = np.unique(together, return_inverse=True)[1].astype(np.int64)
    return numbers.reshape(together.shape)


def _wrong(classes: Classes, target: Classes) -> int:
    """Return the minimum number of wrong cells: in each class, all except those of the most frequent target colour."""
    colours = int(target.max()) + 1
    counts = np.bincount((classes * colours + target).reshape(-1), minlength=(int(classes.max()) + 1) * colours)
    return int(target.size - counts.reshape(-1, colours).max(axis=1).sum())


def _distance(config: Config, steps: int) -> str:
    if config.task.start == "seed" and config.model.neighbourhood == "moore":
        return f"from the one cell to {2 * steps + 1}x{2 * steps + 1}"
    if config.task.start == "zeros":
        return f"from the border to a depth of {steps - 1}"
    return f"{steps} cells from where the initial state is not uniform"


def _refusal(config: Config) -> str:
    start = {"zeros": "an empty grid", "seed": "one cell"}.get(config.task.start, "this initial image")
    where = "on a torus " if config.model.periodic else ""
    return (
        f"This target cannot grow from {start} {where}in any number of steps, because cells with equal neighbourhoods "
        "stay equal: set model.periodic to false, so that there is a border, or change task.start, for example to seed."
    )
