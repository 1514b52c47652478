"""The reach of a start is tested: whether any circuit at all could make the target from it in the steps that it has.

Cells that have seen the same are in the same state, whatever the circuit. So cells are put into classes by what they
have seen: at first by their own bits, then, step by step, by the classes of the cells of their neighbourhood, what is
outside being one more. A target that is not the same all over a class cannot be reached. Example: from one cell on a
torus, T steps tell (2T+1)x(2T+1) cells apart, and all others look alike.
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
"""Larger grids are not looked at: it would take longer than a moment."""

Classes = npt.NDArray[np.int64]


@lru_cache(64)  # a page asks with each change of a form, and then submits the same
def notice(config: Config) -> str | None:
    """A sentence where some cells must stay wrong for want of steps, and how many steps would do.

    Raises ConfigError where no number of steps would.
    """
    task = config.task
    wanted = _wanted(config)
    if wanted is None:
        return None
    first = task.judged_steps[0]
    seen, wrong = _classes(config), 0
    for classes in islice(seen, first + 1):
        wrong = _wrong(classes, wanted)
        if not wrong:
            return None
    enough = next((step for step, classes in enumerate(seen, first + 1) if not _wrong(classes, wanted)), None)
    if enough is None:
        raise ConfigError(_refusal(config))
    cells = f"{wrong} of the {wanted.size} cells of the target"
    field, cost = "the first of task.loss_steps", ""
    if first == task.steps:
        field, cost = "task.steps", f", with which an epoch takes {enough / first:.2g} times as long"
    return (
        f"In {first} steps a signal gets {_how_far(config, first)}, so that at least {cells} stay wrong, whatever is "
        f"learned: {field} should be at least {enough}{cost}."
    )


def _wanted(config: Config) -> Classes | None:
    """The target `[H, W]`, a number for each of its colours; None where there is nothing to find out."""
    task = config.task
    target = job.target(task)
    if target is None or job.start(config) is None or task.height * task.width > MOST_CELLS:
        return None
    return _kinds(target.reshape(-1, task.loss_channels)).reshape(task.height, task.width)


def _classes(config: Config) -> Iterator[Classes]:
    """`[H, W]` after 0, 1, ... steps, until no more cells can be told apart."""
    start = job.start(config)
    assert start is not None
    height, width, channels = start.shape
    cells = wiring.NEIGHBOURHOODS[config.model.neighbourhood]
    # The columns that are read of the row above, of the cell's own, and of the row below: at most three of each.
    read = [[f % 3 for f in cells if f // 3 == dy] for dy in range(3)]
    found = _kinds(np.concatenate([start.reshape(-1, channels), np.zeros((1, channels), np.uint8)]))
    classes, outside, before = found[:-1].reshape(height, width), found[-1], 0
    yield classes
    while True:
        around: dict[str, Any] = {"mode": "wrap"} if config.model.periodic else {"constant_values": outside}
        wide = np.pad(classes, 1, **around)
        # A cell's neighbours are numbered in two passes of three: first across each row, then down.
        rows = (
            _numbered(wide[dy : dy + height, dx : dx + width] for dx in columns)
            for dy, columns in enumerate(read)
            if columns
        )
        classes = _numbered(rows)
        yield classes
        # From the second step on what lies outside is told apart from every cell, whose classes count from 0.
        outside, count = np.int64(-1), int(classes.max()) + 1  # from now on another class than every cell's
        # Classes only ever split. Where a step splits none, no later one will.
        if count == before:
            return
        before = count


def _kinds(cells: npt.NDArray[np.floating | np.uint8]) -> Classes:
    """Each kind of row of the bits `[N, n]` as a number from 0 on."""
    kinds: Classes = np.unique(np.packbits(cells != 0, axis=1), axis=0, return_inverse=True)[1].astype(np.int64)
    return kinds.reshape(-1)


def _numbered(classes: Iterable[Classes]) -> Classes:
    """Each combination of up to three classes, from -1 on, as a number from 0 on."""
    digits = list(classes)
    count = max(int(each.max()) for each in digits) + 2
    # The numbers as the digits of one: with -1 to 3 as classes, count is 5, and (-1, 0, 3) becomes 0*25 + 1*5 + 4.
    together = np.zeros_like(digits[0])
    for each in digits:
        together = together * count + each + 1
    numbers: Classes = np.unique(together, return_inverse=True)[1].astype(np.int64)
    return numbers.reshape(together.shape)


def _wrong(classes: Classes, wanted: Classes) -> int:
    """Cells that are wrong at best: all of a class but those of its most frequent colour."""
    colours = int(wanted.max()) + 1
    # Cells of one class end up alike. The best they can do is the colour that most of them should have.
    counts = np.bincount((classes * colours + wanted).reshape(-1), minlength=(int(classes.max()) + 1) * colours)
    return int(wanted.size - counts.reshape(-1, colours).max(axis=1).sum())


def _how_far(config: Config, steps: int) -> str:
    if config.task.start == "seed" and config.model.neighbourhood == "moore":
        return f"from the one cell to {2 * steps + 1}x{2 * steps + 1}"
    if config.task.start == "zeros":
        return f"from the border to a depth of {steps - 1}"
    return f"{steps} cells from where the start is not the same all over"


def _refusal(config: Config) -> str:
    start = {"zeros": "an empty grid", "seed": "one cell"}.get(config.task.start, "this start picture")
    where = "on a torus " if config.model.periodic else ""
    return (
        f"This target cannot grow from {start} {where}in any number of steps, because cells with equal neighbourhoods "
        "stay equal: set model.periodic to false, so that there is a border, or task.start to another, say seed."
    )
