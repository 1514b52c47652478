"""Stalled runs are given up: those whose training goes nowhere, while another run could still be of use.

There is one rule: by some epochs the soft loss must have fallen so far, and by a last one the run must be solved.
Which epochs these are depends on how it is trained: it grows, it ends with a search, or neither. A run is compared with
itself alone: with its first loss, or with what it was some time before.
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
MENDED = 1.1
"""A search has mended nothing since the first epoch whose wrong values were at most so many times the fewest: of a
hundred it must mend ten, of nine one."""
LONG = 2
"""A search has so many times the epochs that were trained before it, at most EARLIEST of all, and is given up where it
mended nothing for half as long. After long training, which is hardened, half of that is enough: the search mends much
at once, or a fresh attempt does in the same time."""
SOON = 8
"""...and where what is left can be repaired, for an eighth of a first look."""
MEAN_OF = 10
"""Epochs that the soft loss is averaged over: that of one epoch is of a few samples."""


def first_look(config: Config, epochs: int) -> int:
    """Epochs before which nothing stalls: those on the smallest grid, where it grows."""
    until, begin = config.growth.until, config.search.begin
    if until:
        return until[0]
    # A search that begins early is over early too, but not one from the start: nothing was trained by which to tell.
    # What was hardened meanwhile is judged when the search begins.
    after = begin if config.hardening.share else LONG * begin
    return min(math.ceil(EARLIEST * epochs), after if begin > 1 else epochs)


Terms = tuple[dict[int, float], float, str]
"""By which epochs the soft loss must have been how low, and from which epoch on it is given up, and why."""


def why(rows: Sequence[Row], left: int, epochs: int, config: Config) -> str | None:
    """Return why an attempt is of no promise or late, in words that continue a sentence.

    None where it is neither, or where no other attempt could be of use any more. `epochs` are those of all attempts,
    `left` those that were left to this one when it began; `config` is its own.
    """
    done, look = len(rows), first_look(config, epochs)
    # Too early to tell, or too late: another attempt needs a first look's epochs at least, and so would this one have.
    if done < look or left <= 2 * look or left - done < look:
        return None
    # A search has no soft loss.
    if not math.isfinite(_mean(rows[: config.search.begin or None][-MEAN_OF:])):
        return "its soft loss is not finite"
    if config.search.begin:
        losses, end, late = _of_search(rows, look, config)
    elif config.growth.until:
        losses, end, late = _of_growth(rows, epochs, look, config)
    else:
        losses, end, late = _of_progress(rows, left, epochs)
    if done >= end:
        return late
    slow = any(_mean(rows[epoch - MEAN_OF : epoch]) > most for epoch, most in losses.items() if epoch <= done)
    return "its soft loss hardly fell" if slow else None


def mends_nothing(rows: Sequence[Row], config: Config) -> bool:
    """Return whether a search makes so little progress that what can be repaired is repaired sooner."""
    since = max(config.search.begin, _fewest_wrong(rows, MENDED))
    return len(rows) - since >= first_look(config, config.epochs) / SOON


def most_restarts(config: Config, epochs: int) -> int:
    """Return how many restarts can be of use within so many epochs of the whole task."""
    return max(0, int(epochs / schedule.effort(config, first_look(config, epochs))) - 1)


def _of_search(rows: Sequence[Row], look: int, config: Config) -> Terms:
    begin = config.search.begin
    losses = {look: UNLIKE * _values(config)} if begin >= look else {}
    # Most searches are over sooner, and few of the others ever, but those that still find something to mend.
    least = look / LONG if config.hardening.share else look
    return losses, max(begin + least, _fewest_wrong(rows, MENDED) + look / LONG), "it was late"


def _of_growth(rows: Sequence[Row], epochs: int, look: int, config: Config) -> Terms:
    """The soft loss of a cell must have fallen when a grid grows, and some time after that."""
    judged = [*config.growth.until]
    if len(rows) >= judged[-1] + look / 2:
        judged.append(len(rows))
    # Grids of different sizes are compared by the loss of one cell, whose first value is that of a circuit that knows
    # nothing.
    first = _mean(rows[:MEAN_OF]) / schedule.cells(config, 1)
    losses = {epoch: SLOW * first * schedule.cells(config, epoch) for epoch in judged}
    return losses, LATEST_GROWN * epochs, "it was late"


def _of_progress(rows: Sequence[Row], left: int, epochs: int) -> Terms:
    """What makes no progress for a window of epochs is late, but not if another attempt could not catch up with it."""
    since, window = _last_progress(rows), _window(epochs)
    # What has learned fast and then stands still may only be deciding its gates, so it has as long again as it took so
    # far.
    learned = _means(rows)[-window:].min() <= SMALL * _mean(rows[:MEAN_OF])
    end = since + (since if learned else window) if left - len(rows) >= since else math.inf
    return {}, end, f"it made no progress since epoch {since}"


def falls(rows: Sequence[Row], epochs: int) -> bool:
    """Return whether it made progress in the last window of epochs."""
    return len(rows) - _last_progress(rows) < _window(epochs)


def _last_progress(rows: Sequence[Row]) -> int:
    """The epoch from which on the soft loss was no lower, and no fewer values were wrong."""
    if len(rows) < MEAN_OF:
        return len(rows)  # too early to say
    means = _means(rows)
    # argmax gives the first epoch whose mean is within a hundredth of the lowest ever: what came after was no progress.
    lowest = MEAN_OF + int(np.argmax(means * PROGRESS <= means.min()))
    return max(lowest, _fewest_wrong(rows))


def _fewest_wrong(rows: Sequence[Row], times: float = 1.0) -> int:
    """The first epoch with at most so many times the fewest wrong values that there were; 0 where none was judged."""
    judged = [(row.epoch, row.hard_loss) for row in rows if row.hard_loss is not None]
    fewest = min((wrong for _, wrong in judged), default=0)
    return next((epoch for epoch, wrong in judged if wrong <= times * fewest), 0)


def _means(rows: Sequence[Row]) -> npt.NDArray[np.float64]:
    """The means of the soft loss over the epochs up to 10, 11, ..."""
    # A loss that is not finite is no progress, and infinity is larger than everything else.
    soft = [math.inf if math.isnan(row.soft_loss) else row.soft_loss for row in rows]
    return np.convolve(soft, np.full(MEAN_OF, 1 / MEAN_OF), "valid")


def _window(epochs: int) -> int:
    return max(MEAN_OF, round(WINDOW * epochs))


def _values(config: Config) -> int:
    """Return how many values the soft loss is a sum over."""
    task = config.task
    return config.train.batch * task.height * task.width * task.loss_channels * len(task.judged_steps)


def _mean(rows: Sequence[Row]) -> float:
    return sum(row.soft_loss for row in rows) / len(rows) if rows else math.inf
