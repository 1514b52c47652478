"""Attempts that share the epochs of one run: where training stalls, it begins again with other wiring.

An attempt is a run folder of its own, `attempt-1`, `attempt-2`, ..., and beside them `restarts.json` says what came of
each (`difflogic.runs.attempts`): the folder that holds them is taken by every command that takes a run.

    done = train(config, Placement(engine), restarts=3, out=Path("runs/mine"))
    done.best.solved, done.interrupted
    done = resume(Path("runs/mine"), Placement(engine))
"""

from __future__ import annotations

import math
import shutil
import signal
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from difflogic.config.schema import Config
from difflogic.core import prng
from difflogic.devices.open import Placement
from difflogic.errors import ConfigError, UsageError
from difflogic.runs import attempts, checkpoint
from difflogic.runs import folder as folders
from difflogic.runs.attempts import Attempt, Record, Status
from difflogic.system import files
from difflogic.train import stalled, trainer
from difflogic.train.member import Member
from difflogic.train.observer import Observer
from difflogic.train.session import GiveUp
from difflogic.train.signals import Stop
from difflogic.train.trainer import LOG_INTERVAL, Run, Trainer

STREAM = 0x72657374
"""`fold_in` data of the first restart's seed ("rest"); later ones follow."""


def seed_of(seed: int, attempt: int) -> int:
    """The seed of an attempt, counted from 0; the first one's is the run's own."""
    if not attempt:
        return seed
    return int(prng.fold_in(prng.key_from_seed(seed), STREAM + attempt - 1)[1])


def attempt_of(config: Config, number: int, left: int) -> Config:
    """The configuration of an attempt, counted from 0, that has `left` epochs: the run's, cut short.

    Where training ends with a search, its whole schedule shrinks instead, so that there is time for that.
    """
    cut = config.with_(seed=seed_of(config.seed, number), train={"epochs": left})
    if not config.search.begin:
        return cut

    def shrunk(epoch: int) -> int:
        return math.ceil(epoch * left / config.train.epochs)

    return cut.with_(
        schedule={"begin": shrunk(config.schedule.begin), "end": shrunk(config.schedule.end)},
        hardening={"begin": shrunk(config.hardening.begin), "end": shrunk(config.hardening.end)},
        search={"begin": shrunk(config.search.begin)},
    )


def check(config: Config, restarts: int, population: int) -> None:
    """Raises UsageError where the budget is too small for so many attempts to be of use, ConfigError without models."""
    if population < 1:
        raise ConfigError(f"population must be a whole number of at least 1, got {population}.")
    if restarts < 0:
        raise UsageError(f"--restarts must be a whole number of at least 0, got {restarts}.")
    epochs = config.train.epochs
    useful = stalled.first_look(config, epochs)
    most = stalled.most_restarts(config, epochs)
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

    path: Path | None
    """The folder that holds theirs; None where they were kept in memory."""
    record: Record
    runs: tuple[Run, ...]
    """Each attempt's, in order."""

    @property
    def best(self) -> Run:
        """The run of the fewest wrong values: the solved one, where there is one."""
        return self.runs[attempts.fewest([attempt.wrong for attempt in self.record.attempts])]

    @property
    def interrupted(self) -> signal.Signals | str | None:
        """What stopped the last attempt early."""
        return self.runs[-1].interrupted

    @property
    def summary(self) -> str:
        """The best attempt's result, and in a line for each what became of all."""
        number = self.runs.index(self.best) + 1
        told = [f"Attempts:        {number} of {len(self.runs)} is the best", *map(_line, self.record.attempts)]
        return self.best.summary + "\n".join(told) + "\n"


def _line(attempt: Attempt) -> str:
    why = "" if attempt.given_up is None else f": {attempt.given_up}"
    return f"  {attempt}, seed {attempt.seed}{why}"


def train(
    config: Config,
    placement: Placement,
    restarts: int,
    out: Path | None = None,
    population: int = 1,
    stop_when_solved: int = 1,
    log_interval: int = LOG_INTERVAL,
    observer: Observer | None = None,
    stop: Stop | None = None,
) -> Attempts:
    """Attempts until one is solved or interrupted, or `config.train.epochs`, summed over models, are used up.

    `out`: a new folder, which holds a run folder for each attempt; without it nothing is written. `observer` is told
    of each attempt when it begins and when it has ended. `stop` is that of `Trainer.run`.
    Raises what `check` and `Trainer.run` raise.
    """
    check(config, restarts, population)
    record = Record(config, restarts, population, stop_when_solved)
    series = _Series(record, placement, log_interval, observer, stop)
    if out is None:
        return series.train()
    folders.check_new(out)
    out.mkdir(parents=True, exist_ok=True)
    with folders.locked(out):
        return series.train(out)


def resume(
    folder: Path,
    placement: Placement,
    log_interval: int = LOG_INTERVAL,
    observer: Observer | None = None,
    stop: Stop | None = None,
) -> Attempts:
    """Go on with the attempts in a folder: first, bit for bit, with the one that was cut short.

    Raises RunFolderError where the folder holds none or is in use, UsageError where no attempt is left, and what
    `Trainer.run` raises.
    """
    with folders.locked(folder):
        record = attempts.read(folder)
        if record.is_over:
            last = folder / record.attempts[-1].folder
            raise UsageError(
                f"The run in {folder} is over, no attempt is left: train one of them further, say with "
                f"--resume {files.quoted(last)} --epochs N."
            )
        return _Series(record, placement, log_interval, observer, stop).train(folder)


class _Series:
    """Attempt after attempt."""

    def __init__(
        self,
        record: Record,
        placement: Placement,
        log_interval: int,
        observer: Observer | None,
        stop: Stop | None,
    ) -> None:
        self._record, self._placement = record, placement
        self._log_interval, self._stop = log_interval, stop
        self._observer = observer or Observer()

    def train(self, out: Path | None = None) -> Attempts:
        """Those that are left."""
        done = [attempt for attempt in self._record.attempts if not attempt.is_open]
        runs = [] if out is None else [trainer.load(out / attempt.folder) for attempt in done]
        while not self._record.is_over:
            attempt = self._next()
            self._note(attempt, out)
            runs.append(self._run(attempt, None if out is None else out / attempt.folder))
            self._note(_ended(attempt, runs[-1]), out)
            if runs[-1].interrupted is not None:
                break
        return Attempts(out, self._record, tuple(runs))

    def _next(self) -> Attempt:
        """The attempt that was cut short, else a new one."""
        record, earlier = self._record, self._record.attempts
        if earlier and earlier[-1].is_open:
            return replace(earlier[-1], status="running")
        left = (record.config.train.epochs - record.epochs) // record.population
        reason = "it is the first"
        if earlier:
            reason = f"attempt {len(earlier)} was given up at epoch {earlier[-1].epoch}, as {earlier[-1].given_up}"
        seed = seed_of(record.config.seed, len(earlier))
        return Attempt(len(earlier) + 1, record.restarts + 1, seed, left, reason)

    def _note(self, attempt: Attempt, out: Path | None) -> None:
        """Keep and tell how an attempt stands."""
        self._record = self._record.with_attempt(attempt)
        if out is not None:
            self._record.write(out)
        self._observer.attempted(attempt)

    def _run(self, attempt: Attempt, folder: Path | None) -> Run:
        record, placement = self._record, self._placement
        config = attempt_of(record.config, attempt.number - 1, attempt.epochs)
        resumed = folder is not None and _can_go_on(folder)
        return Trainer(config, placement.engine, placement.reason, placement.max_memory, placement.candidate).run(
            out=None if resumed else folder,
            resume=folder if resumed else None,
            population=None if resumed else record.population,
            stop_when_solved=record.stop_when_solved,
            log_interval=self._log_interval,
            stop=self._stop,
            observer=self._observer,
            give_up=None
            if attempt.number == attempt.of
            else _hopeless(config, record.config.train.epochs // record.population),
        )


def _can_go_on(folder: Path) -> bool:
    """Whether an attempt was saved; what one leaves that was killed before is removed."""
    if checkpoint.is_in(folder):
        return True
    if folder.exists():
        shutil.rmtree(folder)
    return False


def _ended(attempt: Attempt, run: Run) -> Attempt:
    status: Status = "complete"
    if not run.complete:
        status = "interrupted"
    elif run.solved:
        status = "solved"
    elif run.given_up is not None:
        status = "given up"
    return replace(attempt, status=status, epoch=run.state.epoch, wrong=run.wrong, given_up=run.given_up)


def _hopeless(config: Config, epochs: int) -> GiveUp:
    """Says why, where all members are stalled."""

    def why(members: Sequence[Member]) -> str | None:
        reasons = [stalled.why(member.metrics, config.train.epochs, epochs, config) for member in members]
        return reasons[0] if all(reasons) else None

    return why
