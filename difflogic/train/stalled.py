"""Stalled runs are given up: those whose training goes nowhere, while another run could still be of use.

Every rule compares a run with itself: with its first loss, or with what it was some time before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from difflogic.config import schedule
from difflogic.config.schema import Config
from difflogic.runs.journal import Row

EARLIEST, WINDOW = 0.2, 0.1
"""Shares of all epochs: before the first nothing stalls, flat is what made no progress for the second."""
LATEST_GROWN = 0.5
"""What grew and is not solved by this share never is in time."""
SLOW = 0.1
"""When a grid grows, the soft loss of a cell that is still above this share of its first value is of no promise: epochs
on the larger grid cost many times as much, and what has learned a board on the smaller one ends with nearly none."""
SMALL = 0.03
"""A soft loss below this share of its first value is as good as learned: what is left is to decide gates, which takes
long, and may raise the loss again."""
PROGRESS = 0.99
"""A soft loss has fallen where it is below this share of what it was."""
UNLIKE = 0.1
"""Where a search is to mend what training leaves: a soft loss of a value above this, at the first look, is more than it
mends."""
LONG = 2
"""A search of so many times the epochs that were trained before it is given up, if it has had a first look's."""
MEAN_OF = 10
"""Epochs that the soft loss is averaged over: that of one epoch is of a few samples."""


def first_look(config: Config, epochs: int) -> int:
    """Epochs before which nothing stalls: those on the smallest grid, where it grows."""
    until = config.growth.until
    return until[0] if until else math.ceil(EARLIEST * epochs)


def why(rows: Sequence[Row], left: int, epochs: int, config: Config) -> str | None:
    """Return why an attempt is of no promise or late, in words that continue a sentence.

    None where it is neither, or where no other attempt could be of use any more. `epochs` are those of all attempts,
    `left` those that were left to this one when it began; `config` is its own. One that ends with a search is tested
    by its soft loss at the first look alone, unless it searches by then, for a search has none.
    """
    done, look = len(rows), first_look(config, epochs)
    # Too early to tell, or too late: another attempt needs a first look's epochs at least, and so would this one have.
    if done < look or left <= 2 * look or left - done < look:
        return None
    if config.search.begin:
        # `not ... <=` and not `>`, so that a loss that is NaN counts as too large.
        begin = config.search.begin
        if begin >= look and not _mean(rows[look - MEAN_OF : look]) <= UNLIKE * _values(config):
            return "its soft loss was more than a search mends"
        # Most searches are over sooner, and few of the others ever.
        return "its search took long" if done - begin >= max(LONG * begin, look) else None
    if not math.isfinite(_mean(rows[-MEAN_OF:])):
        return "its soft loss is not finite"
    return _why_grown(rows, epochs, look, config) if config.growth.until else _why_plain(rows, left, epochs)


def most_restarts(config: Config, epochs: int) -> int:
    """Return how many restarts can be of use within so many epochs of the whole task."""
    return max(0, int(epochs / schedule.effort(config, first_look(config, epochs))) - 1)


def _why_grown(rows: Sequence[Row], epochs: int, look: int, config: Config) -> str | None:
    """Late, or the soft loss of a cell had hardly fallen when a grid grew, or has hardly some time after that."""
    if len(rows) >= LATEST_GROWN * epochs:
        return "it was late"
    until = config.growth.until
    judged = [epoch for epoch in until if epoch <= len(rows)]
    if len(rows) >= until[-1] + look / 2:
        judged.append(len(rows))
    # Grids of different sizes are compared by the loss of one cell, whose first value is that of a circuit that knows
    # nothing.
    first = _mean(rows[:MEAN_OF]) / schedule.cells(config, 1)
    slow = any(_mean(rows[epoch - MEAN_OF : epoch]) / schedule.cells(config, epoch) > SLOW * first for epoch in judged)
    return "its soft loss hardly fell" if slow else None


def _why_plain(rows: Sequence[Row], left: int, epochs: int) -> str | None:
    """No progress for a window of epochs: neither a lower soft loss nor fewer wrong values than ever before.

    What has learned has as long again as that took. Nothing is given up that another attempt could not catch up with.
    """
    lowest = _lowest(rows, epochs)
    if lowest is None:
        return None
    since, learned = _last_progress(rows), lowest[1] <= SMALL * _mean(rows[:MEAN_OF])
    # What has learned fast and then stands still may only be deciding its gates, so it has as long again as it took so
    # far.
    over = len(rows) - since >= (since if learned else _window(epochs))
    return f"it made no progress since epoch {since}" if over and left - len(rows) >= since else None


def falls(rows: Sequence[Row], epochs: int) -> bool:
    """Return whether in the last window of epochs the soft loss was lower, or fewer values wrong, than ever before."""
    lowest, window = _lowest(rows, epochs), _window(epochs)
    if lowest is None:
        return True
    return lowest[1] < PROGRESS * lowest[0] or _fewest(rows[-window:]) < _fewest(rows[:-window])


def _lowest(rows: Sequence[Row], epochs: int) -> tuple[float, float] | None:
    """The lowest mean of the soft loss before the last window, and in it; None where it is too early to say."""
    window = _window(epochs)
    if len(rows) < MEAN_OF + window:
        return None
    means = _means(rows)
    return float(means[:-window].min()), float(means[-window:].min())


def _last_progress(rows: Sequence[Row]) -> int:
    """The epoch from which on the soft loss was no lower, and no fewer values were wrong."""
    means, fewest = _means(rows), _fewest(rows)
    # argmax gives the first epoch whose mean is within a hundredth of the lowest ever: what came after was no progress.
    lowest = MEAN_OF + int(np.argmax(means * PROGRESS <= means.min()))
    return max(lowest, next((row.epoch for row in rows if row.hard_loss == fewest), 0))


def _means(rows: Sequence[Row]) -> npt.NDArray[np.float64]:
    """The means of the soft loss over the epochs up to 10, 11, ..."""
    # A loss that is not finite is no progress, and infinity is larger than everything else.
    soft = [math.inf if math.isnan(row.soft_loss) else row.soft_loss for row in rows]
    return np.convolve(soft, np.full(MEAN_OF, 1 / MEAN_OF), "valid")


def _window(epochs: int) -> int:
    return max(MEAN_OF, round(WINDOW * epochs))


def _fewest(rows: Sequence[Row]) -> float:
    """Wrong values of the best evaluation."""
    return min((row.hard_loss for row in rows if row.hard_loss is not None), default=math.inf)


def _values(config: Config) -> int:
    """Return how many values the soft loss is a sum over."""
    task = config.task
    return config.train.batch * task.height * task.width * task.loss_channels * len(task.judged_steps)


def _mean(rows: Sequence[Row]) -> float:
    return sum(row.soft_loss for row in rows) / len(rows) if rows else math.inf
