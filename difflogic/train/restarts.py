"""Attempts that share the epochs of one run: where training stalls, it begins again with other wiring.

An attempt is a run folder of its own, `attempt-1`, `attempt-2`, ..., that can be resumed as any; beside them
`restarts.json` says what came of each.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from difflogic import files, prng
from difflogic.config import Config
from difflogic.errors import UsageError
from difflogic.train import growth
from difflogic.train.journal import Row
from difflogic.train.loop import Run
from difflogic.train.member import Member
from difflogic.train.observer import Observer

NAME = "restarts.json"
STREAM = 0x72657374
"""`fold_in` data of the first restart's seed ("rest"); later ones follow."""
EARLIEST, WINDOW, LATEST = 0.2, 0.1, 0.6
"""Shares of all epochs: before the first nothing stalls, flat is what has not fallen for the second, and what is not
solved by the third never is in time."""
LATEST_GROWN = 0.5
"""The third, where a grid grows."""
SLOW = 0.625
"""The soft loss of a cell that is still above this share of its first value on a grid is of no promise."""
SMALL = 0.03
"""A soft loss below this share of its first value is as good as learned, and hardening may raise it again."""
UNLIKE = 0.025
"""Where a search is to mend what training leaves: a soft loss of a value above this, at the first look, is more than it
mends."""
MEAN_OF = 10
"""Epochs that the soft loss is averaged over."""

Attempt = Callable[[Config, Path | None, Callable[[Sequence[Member]], bool] | None], Run]
"""Trains a configuration in a folder, unless it is given up."""


def seed_of(seed: int, attempt: int) -> int:
    """The seed of an attempt, counted from 0; the first one's is the run's own."""
    if not attempt:
        return seed
    return int(prng.fold_in(prng.key_from_seed(seed), STREAM + attempt - 1)[1])


def attempt_of(config: Config, number: int, left: int) -> Config:
    """The configuration of an attempt, counted from 0, that has `left` epochs: the run's, cut short.

    Where training ends with a search, its whole schedule shrinks instead, so that there is time for that.
    """
    train, own = config.train, {"epochs": left}
    if train.settle_from:
        shrunk = ("harden_from", "harden_to", "lr_from", "lr_to", "settle_from")
        own |= {name: math.ceil(getattr(train, name) * left / train.epochs) for name in shrunk}
    return config.with_(seed=seed_of(config.seed, number), train=own)


def first_look(config: Config, epochs: int) -> int:
    """Epochs before which nothing stalls: those on the smallest grid, where it grows."""
    until = config.train.growth_until
    return until[0] if until else math.ceil(EARLIEST * epochs)


def is_stalled(rows: Sequence[Row], left: int, epochs: int, config: Config) -> bool:
    """True where an attempt is of no promise or late, and another attempt could still be of use.

    `epochs` are those of all attempts, `left` those that were left to this one when it began; `config` is its own.
    One that ends with a search is judged at the first look alone, unless it searches by then: a search has no soft
    loss, and needs what is left.
    """
    done, look = len(rows), first_look(config, epochs)
    if done < look or left <= 2 * look or left - done < look:
        return False
    if config.train.settle_from:
        return config.train.settle_from >= look and not _mean(rows[look - MEAN_OF : look]) <= UNLIKE * _values(config)
    if done >= (LATEST_GROWN if config.train.growth_until else LATEST) * epochs or not math.isfinite(
        _mean(rows[-MEAN_OF:])
    ):
        return True
    return _is_slow(rows, config, look) if config.train.growth_until else _is_flat(rows, epochs)


def _is_slow(rows: Sequence[Row], config: Config, look: int) -> bool:
    """Whether the soft loss of a cell had hardly fallen when a grid grew, or has hardly some time after that."""
    until = config.train.growth_until
    judged = [epoch for epoch in until if epoch <= len(rows)]
    if len(rows) >= until[-1] + look / 2:
        judged.append(len(rows))
    first = _mean(rows[:MEAN_OF]) / growth.cells(config, 1)
    return any(_mean(rows[epoch - MEAN_OF : epoch]) / growth.cells(config, epoch) > SLOW * first for epoch in judged)


def _values(config: Config) -> int:
    """How many values the soft loss is a sum over."""
    task = config.task
    return config.train.batch * task.height * task.width * task.loss_channels * len(task.judged_steps)


def _is_flat(rows: Sequence[Row], epochs: int) -> bool:
    window = max(MEAN_OF, round(WINDOW * epochs))
    now, before = _mean(rows[-MEAN_OF:]), _mean(rows[-window - MEAN_OF : -window])
    return now >= before and now > SMALL * _mean(rows[:MEAN_OF])


def _mean(rows: Sequence[Row]) -> float:
    return sum(row.soft_loss for row in rows) / len(rows) if rows else math.inf


def check(config: Config, restarts: int, population: int) -> None:
    """Raises UsageError where the budget is too small for so many attempts to be of use."""
    if restarts < 0:
        raise UsageError(f"--restarts must be a whole number of at least 0, got {restarts}.")
    epochs = config.train.epochs
    useful = first_look(config, epochs)
    most = max(0, epochs // useful - 1)
    if restarts > most:
        raise UsageError(
            f"{restarts} restarts share {epochs} epochs, but no run is given up before epoch {useful}: "
            f"give at most {most} restarts."
        )
    if epochs // population < useful:
        raise UsageError(
            f"With restarts, {epochs} epochs are shared by all {population} models, {epochs // population} each, "
            f"but one useful run takes {useful}: give a smaller population, or more epochs."
        )


@dataclass(frozen=True)
class Attempts:
    """What came of all attempts."""

    runs: tuple[Run, ...]

    @property
    def last(self) -> Run:
        return self.runs[-1]

    @property
    def epochs(self) -> int:
        """Summed over attempts and their members."""
        return sum(len(run.members) * run.state.epoch for run in self.runs)


def train(
    config: Config, restarts: int, population: int, out: Path | None, attempt: Attempt, observer: Observer
) -> Attempts:
    """Attempts until one is solved or interrupted, or `config.train.epochs`, summed over members, are used up.

    `observer` is told where a new one begins. Raises what `check` and the attempts raise.
    """
    budget = config.train.epochs
    check(config, restarts, population)
    runs: list[Run] = []
    for number in range(restarts + 1):
        left = (budget - Attempts(tuple(runs)).epochs) // population
        if runs:
            observer.noticed(
                f"Attempt {number} stalled at epoch {runs[-1].state.epoch}: it begins again with other wiring, "
                f"{left} epochs are left."
            )
        own = attempt_of(config, number, left)
        folder = None if out is None else out / f"attempt-{number + 1}"
        last = number == restarts
        runs.append(attempt(own, folder, None if last else _hopeless(own, budget // population)))
        if out is not None:
            _write(out, config, runs)
        if runs[-1].solved or runs[-1].interrupted is not None or runs[-1].state.epoch == left:
            break
    return Attempts(tuple(runs))


def _hopeless(config: Config, epochs: int) -> Callable[[Sequence[Member]], bool]:
    """Whether all members are stalled."""
    return lambda members: all(is_stalled(member.metrics, config.train.epochs, epochs, config) for member in members)


def _write(out: Path, config: Config, runs: Sequence[Run]) -> None:
    attempts = [
        {"folder": run.path.name, "seed": run.config.seed, "epochs": run.state.epoch, "solved": run.solved}
        for run in runs
        if run.path is not None
    ]
    text = json.dumps({"epochs": config.train.epochs, "attempts": attempts}, indent=2)
    files.write_atomically(out / NAME, text.encode() + b"\n")
