"""One process's part of a run: the loop that trains, evaluates, journals and saves, whatever it trains.

`Automata` and `Agents` are what it trains: each says how an epoch is trained, what an evaluation is, and what is kept.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from difflogic.config.policy import PolicyConfig
from difflogic.config.request import TrainRequest
from difflogic.config.schema import Config
from difflogic.devices.open import Placement
from difflogic.engine.api import EngineInfo, Evaluation
from difflogic.errors import RunFolderError, UsageError
from difflogic.model.circuit import Circuit
from difflogic.runs import manifest
from difflogic.runs.checkpoint import Checkpoint
from difflogic.runs.folder import RunFolder
from difflogic.runs.journal import COLUMNS, MetricsLine
from difflogic.train.finishing import Finishing
from difflogic.train.observer import Beginning, Observer
from difflogic.train.replica import Replica
from difflogic.train.run import EndedRun, M
from difflogic.train.signals import Stop

R = TypeVar("R", bound=EndedRun[Any])


class BrokenOffError(Exception):
    """Somebody asked for the end while an evaluation was played: it is played again when the run goes on."""


@dataclass(frozen=True)
class Rules:
    """Rules that end a run of automata before its last epoch, applied at each evaluation, and its finishing passes."""

    accept: Callable[[Replica, Evaluation], bool] = lambda member, evaluation: evaluation.hard_loss == 0
    """Is a model a solution? Otherwise one is that has no wrong value on its probes."""
    give_up: Callable[[Sequence[Replica]], str | None] | None = None
    """Why are these models beyond hope? None where they are not."""
    finish: Callable[[Circuit], Circuit] | None = None
    """Makes of a solution the circuit that is kept, where solutions end the run; hard it must do the same."""
    passes: Finishing | None = None
    """Passes for what is not a solution yet at the end of the run."""


class Session(ABC, Generic[M, R]):
    """Drives the training of one model or many. `folder`, where there is one, gets rows and checkpoints."""

    columns: ClassVar[Sequence[str]] = COLUMNS
    """Of metrics.csv."""

    config: Config | PolicyConfig
    """With the first seed."""
    epochs: int
    """In all; of agents environment steps."""

    def __init__(
        self, request: TrainRequest, placement: Placement, members: Sequence[M], epoch: int, observer: Observer
    ) -> None:
        """Raises UsageError where the request cannot be met by so many models."""
        self.stop_when_solved = request.solved_models
        if not 0 <= self.stop_when_solved <= max(1, len(members)):
            raise UsageError(
                f"stop_when_solved counts solved models: expected at most {len(members)}, the population, got "
                f"{self.stop_when_solved}."
            )
        self.placement, self.members, self.observer = placement, members, observer
        self.folder: RunFolder | None = None
        self.record: dict[str, Any] = {}
        self.stop = Stop()
        self.epoch = self._first_epoch = epoch
        # The epochs whose rows are written, and whose states are saved. Both lag behind `epoch`, which counts what was
        # given to the engine.
        self._reported = self._saved = epoch
        self._clock = time.monotonic()
        self.seconds_before = self.seconds_here = 0.0
        self.notices: tuple[str, ...] = ()
        self.lender: str | None = None
        """Whose circuit it begins with, in one sentence."""
        self.accepted: list[bool] = []
        """Which models the last evaluation found to be solutions."""
        self.given_up: str | None = None
        """Why it was."""
        self.complete = False
        """True where all epochs were done, solutions ended the run, or it was given up."""

    # what is trained says this -----------------------------------------------------------------------

    @property
    @abstractmethod
    def info(self) -> EngineInfo:
        """Return what it runs on now."""

    @abstractmethod
    def next_stop(self) -> int:
        """The next epoch that is evaluated."""

    @abstractmethod
    def iterate(self, stop: int) -> None:
        """Train towards epoch `stop`, as far as it goes at once."""

    @abstractmethod
    def is_logged(self) -> bool:
        """Return whether the rows of this epoch are due, which is not evaluated."""

    @abstractmethod
    def report(self, judged: bool = False, leaving: bool = False) -> None:
        """Write and tell the rows so far; `judged`: evaluate this epoch, and save. Raises BrokenOffError."""

    @abstractmethod
    def state(self) -> Checkpoint[Any]:
        """Everything that goes on from this epoch."""

    @abstractmethod
    def close(self) -> None:
        """Free what the engine or the environments hold."""

    @abstractmethod
    def end(self) -> R:
        """The run, with its results in the folder."""

    def begin(self) -> None:
        """What has to be known before the first epoch of this process. Raises BrokenOffError."""

    def hopeless(self) -> str | None:
        """Return why the evaluation of this epoch gives the run up: the answer is the same after a resume."""

    def finish(self) -> None:
        """Train no more, but test what is over. Raises BrokenOffError."""

    def journal(self) -> Sequence[Sequence[MetricsLine]]:
        """Each model's rows that a resumed run begins with."""
        return [[] for _ in self.members]

    def contents(self) -> Mapping[str, bytes]:
        """Further files of a new run folder."""
        return {}

    # the loop ----------------------------------------------------------------------------------------

    def keep(self, folder: RunFolder, record: dict[str, Any]) -> Session[M, R]:
        """Write into this folder, whose manifest is `record`."""
        self.folder, self.record = folder, record
        return self

    @property
    def seeds(self) -> list[int]:
        return [each.seed for each in self.members]

    @property
    def epochs_here(self) -> int:
        """Epochs that this process trained."""
        return self.epoch - self._first_epoch

    @property
    def seconds(self) -> float:
        """Seconds of training so far, over all processes."""
        return self.seconds_before + time.monotonic() - self._clock

    @property
    def elapsed_s(self) -> float:
        """Seconds of training in all, once it is over."""
        return self.seconds_before + self.seconds_here

    def train(self, stop: Stop) -> None:
        """Epochs until the last, as many solutions as end the run, a rule that gives it up, or `stop`."""
        path = None if self.folder is None else self.folder.path
        self.observer.began(
            Beginning(
                self.config, self.placement.engine.info, self.placement.reason, path, self.epoch, self.epochs,
                len(self.members), self.lender,
            )
        )  # fmt: skip
        for notice in self.notices:
            self.observer.noticed(notice)
        self.stop, self._clock = stop, time.monotonic()
        try:
            self._train(stop)
        except BrokenOffError:
            self.complete = False
        if not self.complete:
            self._leave()
        self.seconds_here = self.seconds - self.seconds_before

    def _train(self, stop: Stop) -> None:
        self.begin()
        # A resumed run may be over already, or have been given up just before its process was killed. Then no epoch is
        # trained.
        self.complete = self._is_over()
        while not self.complete and stop.reason is None:
            # Training never goes beyond an evaluation, so that every scheduled evaluation is of a state that is
            # saved. It may take several calls to get there, and between two of them a signal is heard.
            next_stop = self.next_stop()
            self.iterate(next_stop)
            if self.epoch >= next_stop:
                self.report(judged=True)
            elif self.is_logged():
                self.report()
            self.complete = self._is_over()
        if self.complete:
            self.finish()

    def _is_over(self) -> bool:
        """Return whether it ends here: solved, with its last epoch, or given up. Only `stop` ends it elsewhere."""
        if 0 < self.stop_when_solved <= sum(self.accepted) or self.epoch >= self.epochs:
            return True
        if self.epoch == self._reported:  # what gives it up is an evaluation, whose rows are there
            self.given_up = self.hopeless()
        return self.given_up is not None

    def _leave(self) -> None:
        """Save what was interrupted, without an evaluation that the schedule does not know."""
        if self._reported < self.epoch:
            self.report(leaving=True)
        if self._saved < self.epoch:
            self.save()

    def append(self, rows: Sequence[Sequence[MetricsLine]]) -> None:
        """Write rows, which are all that there are up to now."""
        self._reported = self.epoch
        if self.folder is not None:
            self.folder.append(rows)

    def save(self) -> None:
        if self.folder is None:
            return
        self.folder.save(self.state())
        self._saved = self.epoch
        self.observer.saved(self.epoch)

    def write_end(self, summary: str) -> None:
        """How it ended, into the manifest."""
        if self.folder is not None:
            ended = manifest.end(self.record, "complete" if self.complete else "interrupted", self.epoch, summary)
            self.folder.write(manifest.NAME, manifest.to_json(ended))

    def fail(self, error: BaseException) -> None:
        """Leave the reason in the manifest, if the disk still takes it."""
        if self.folder is None:
            return
        status = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
        # The manifest tells the epoch of the last checkpoint: what was trained after it is lost.
        ended = manifest.end(self.record, status, self._saved, f"{type(error).__name__}: {error}")
        with suppress(RunFolderError):
            self.folder.write(manifest.NAME, manifest.to_json(ended))
