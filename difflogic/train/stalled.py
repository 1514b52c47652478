"""Early stopping: an attempt without progress ends while there is still time for another attempt.

One rule applies to every kind of training. Progress is a fall of the soft loss per cell, or of the mismatches per
cell, to `PROGRESS` times the former minimum. From epoch `first_look` on, an attempt ends if the epochs since its last
progress cost as much as all epochs before, or if its soft loss never fell to `HOPELESS` times the initial loss.
"""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from difflogic.config import schedule
from difflogic.config.schema import Config
from difflogic.runs.journal import Row

FIRST_LOOK = 0.2
"""Share of all epochs before which no attempt is stopped early."""
HOPELESS = 0.3
"""Share of the initial soft loss above which an attempt is stopped early."""
PROGRESS = 0.9
"""Share of the former minimum to which a loss must fall to count as progress."""
MEAN_OF = 10
"""Number of epochs over which the soft loss is averaged, since one epoch has few samples."""


def first_look(config: Config, epochs: int) -> int:
    """Return the epoch before which no attempt is stopped early; with growth, the last epoch on the first grid.

    A search that begins early is first tested after as many epochs as were trained before it.
    """
    begin = config.search.begin
    if config.growth.until:
        return config.growth.until[0]
    return min(math.ceil(FIRST_LOOK * epochs), 2 * begin if begin > 1 else epochs)


def why(rows: Sequence[Row], left: int, epochs: int, config: Config) -> str | None:
    """Return the reason to stop an attempt early, as a clause of a sentence, or None to continue.

    Args:
        rows: Metrics of the attempt's epochs.
        left: Number of epochs that were left for this and later attempts when this attempt began.
        epochs: Number of epochs of all attempts.
        config: Configuration of the attempt.
    """
    done, look = len(rows), first_look(config, epochs)
    # The attempt is too young, or too few epochs are left for another attempt, which needs `look` epochs.
    if done < look or left <= 2 * look or left - done < look:
        return None
    losses = _mean_losses(rows, config)
    if not math.isfinite(losses[-1]):
        return "its soft loss is not finite"
    if len(losses) > 1 and losses.min() > HOPELESS * losses[0]:
        return "its soft loss hardly fell"
    since = last_progress(rows, config)
    if left - done >= since and schedule.effort(config, done) >= 2 * schedule.effort(config, since):
        return f"it made no progress since epoch {since}"
    return None


def is_milestone(rows: Sequence[Row], config: Config) -> bool:
    """Return whether the last evaluation is the first after `first_look` epochs, or after 2, 4, 8 ... times as many.

    At milestones, repair of an image is tried, since a search may need minutes for the last few wrong cells.
    """
    look = first_look(config, config.epochs)
    before, last = [0, *(row.epoch for row in rows if row.hard_loss is not None)][-2:]
    return (last // look).bit_length() > (before // look).bit_length()


def most_restarts(config: Config, epochs: int) -> int:
    """Return the maximum useful number of restarts within `epochs` epochs of the complete task."""
    return max(0, int(epochs / schedule.effort(config, first_look(config, epochs))) - 1)


def last_progress(rows: Sequence[Row], config: Config) -> int:
    """Return the last epoch that made progress."""
    losses = _mean_losses(rows, config)
    evaluated = [row for row in rows if row.hard_loss is not None]
    wrong = np.array([row.hard_loss for row in evaluated]) / _cells(evaluated, config)
    lowest = min(MEAN_OF, len(rows)) + int(np.argmax(PROGRESS * losses <= losses.min()))
    return max(lowest, evaluated[int(np.argmax(PROGRESS * wrong <= wrong.min()))].epoch) if evaluated else lowest


def _mean_losses(rows: Sequence[Row], config: Config) -> npt.NDArray[np.float64]:
    """Return the moving average of the soft loss per cell over `MEAN_OF` epochs, up to the search."""
    trained = rows[: config.search.begin or None]
    soft = np.array([row.soft_loss for row in trained]) / _cells(trained, config)
    soft[np.isnan(soft)] = math.inf  # no progress, and larger than everything else
    length = min(MEAN_OF, len(soft))
    return np.convolve(soft, np.full(length, 1 / length), "valid")


def _cells(rows: Sequence[Row], config: Config) -> npt.NDArray[np.int64]:
    """Return, for each row, the number of cells of the grid on which its epoch trained."""
    until = config.growth.until
    sizes = np.array([schedule.cells(config, end + 1) for end in (0, *until)])
    return sizes[np.searchsorted(until, [row.epoch for row in rows])]
