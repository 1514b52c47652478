"""Training session: the part of a run that one process trains.

The loop of training, evaluation, metrics and checkpoints is the same for automata and agents. The subclasses `Automata`
and `Agents` define an epoch, an evaluation, and the contents of a checkpoint.
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
    """A stop was requested during an evaluation. A resumed run repeats the evaluation."""


@dataclass(frozen=True)
class Rules:
    """Rules of a run of automata: success test and early stopping at each evaluation, and final changes of circuits."""

    accept: Callable[[Replica, Evaluation], bool] = lambda member, evaluation: evaluation.hard_loss == 0
    """Success test of a model: by default, no cell may be wrong on evaluation grids."""
    give_up: Callable[[Sequence[Replica]], str | None] | None = None
    """Early stopping: function that returns a reason to stop the models, or None."""
    finish: Callable[[Circuit], Circuit] | None = None
    """Final change of the solved circuits at the end, which must preserve their hard functions; None for no change."""
    passes: Finishing | None = None
    """Finishing passes, which try to make the best model a solution at the end of the run."""


class Session(ABC, Generic[M, R]):
    """Loop that trains one or more models, and writes metrics and checkpoints to `folder` unless it is None."""

    columns: ClassVar[Sequence[str]] = COLUMNS
    """Columns of metrics.csv."""

    config: Config | PolicyConfig
    """Configuration of the run, with the seed of the first model."""
    epochs: int
    """Total number of epochs, or of environment steps for agents."""

    def __init__(
        self, request: TrainRequest, placement: Placement, members: Sequence[M], epoch: int, observer: Observer
    ) -> None:
        """Raise UsageError if the request requires more solved models than there are `members`."""
        self.stop_when_solved = request.solved_models
        if not 0 <= self.stop_when_solved <= max(1, len(members)):
            raise UsageError(
                f"stop_when_solved is a number of models: expected at most {len(members)}, the population, got "
                f"{self.stop_when_solved}."
            )
        self.placement, self.members, self.observer = placement, members, observer
        self.folder: RunFolder | None = None
        self.record: dict[str, Any] = {}
        self.stop = Stop()
        self.epoch = self._first_epoch = epoch
        # The last epochs with written rows and with a saved state. Both may be before `epoch`, the last epoch that
        # was passed to the engine.
        self._reported = self._saved = epoch
        self._clock = time.monotonic()
        self.seconds_before = self.seconds_here = 0.0
        self.notices: tuple[str, ...] = ()
        self.lender: str | None = None
        """Source of the initial circuit, as the end of a sentence; None for a new circuit."""
        self.accepted: list[bool] = []
        """Result of the last evaluation: for each model, True if it is a solution."""
        self.given_up: str | None = None
        """Reason for early stopping; None if the run was not stopped early."""
        self.complete = False
        """True if the run reached its last epoch, was ended by solutions, or was stopped early."""

    # defined by automata and agents --------------------------------------------------------------------

    @property
    @abstractmethod
    def info(self) -> EngineInfo:
        """Description of the engine that currently trains."""

    @abstractmethod
    def next_stop(self) -> int:
        """Return the next epoch with an evaluation."""

    @abstractmethod
    def iterate(self, stop: int) -> None:
        """Train towards epoch `stop` in one call of the engine, which may end earlier."""

    @abstractmethod
    def is_logged(self) -> bool:
        """Return whether to report the rows of this epoch even without an evaluation."""

    @abstractmethod
    def report(self, evaluate: bool = False, leaving: bool = False) -> None:
        """Write and report new rows, the last if `leaving`; if `evaluate`, evaluate and save. Raises BrokenOffError."""

    @abstractmethod
    def state(self) -> Checkpoint[Any]:
        """Return the checkpoint from which training can continue after this epoch."""

    @abstractmethod
    def close(self) -> None:
        """Free the engine's model or the environments."""

    @abstractmethod
    def end(self) -> R:
        """Write the results to the folder, and return the run."""

    def begin(self) -> None:
        """Prepare the first epoch of this process. Raises BrokenOffError."""

    def reason_to_stop(self) -> str | None:
        """Return the reason to stop early after the latest evaluation, or None. A resumed run gives the same reason."""

    def finish(self) -> None:
        """Run the final evaluation or the finishing passes after the last epoch. Raises BrokenOffError."""

    def journal(self) -> Sequence[Sequence[MetricsLine]]:
        """Return each model's rows from before this process, with which the metrics of a resumed run begin."""
        return [[] for _ in self.members]

    def contents(self) -> Mapping[str, bytes]:
        """Return the contents of further files for a new run folder, by file name."""
        return {}

    # the loop ----------------------------------------------------------------------------------------

    def write_to(self, folder: RunFolder, record: dict[str, Any]) -> Session[M, R]:
        """Set the folder for metrics and checkpoints, and its manifest `record`; return the session."""
        self.folder, self.record = folder, record
        return self

    @property
    def seeds(self) -> list[int]:
        return [member.seed for member in self.members]

    @property
    def seconds(self) -> float:
        """Number of seconds of training so far, over all processes."""
        return self.seconds_before + time.monotonic() - self._clock

    @property
    def elapsed_s(self) -> float:
        """Total number of seconds of training, known after its end."""
        return self.seconds_before + self.seconds_here

    def train(self, stop: Stop) -> None:
        """Train until the last epoch, enough solutions, early stopping, or a request by `stop`."""
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
        # A run may have been killed just after its end or early stopping. If it is resumed, no epoch is trained.
        # So the condition is tested first.
        self.complete = self._is_over()
        while not self.complete and stop.reason is None:
            # Training pauses at each evaluation, so that every scheduled evaluation belongs to a saved state. Reaching
            # it may take several calls; a requested stop takes effect between two calls.
            next_stop = self.next_stop()
            self.iterate(next_stop)
            if self.epoch >= next_stop:
                self.report(evaluate=True)
            elif self.is_logged():
                self.report()
            self.complete = self._is_over()
        if self.complete:
            self.finish()

    def _is_over(self) -> bool:
        """Return whether the run ends after this epoch: it is solved, complete, or stopped early."""
        if 0 < self.stop_when_solved <= sum(self.accepted) or self.epoch >= self.epochs:
            return True
        if self.epoch == self._reported:  # early stopping follows an evaluation, whose rows are reported
            self.given_up = self.reason_to_stop()
        return self.given_up is not None

    def _leave(self) -> None:
        """Save the interrupted state, without an unscheduled evaluation."""
        if self._reported < self.epoch:
            self.report(leaving=True)
        if self._saved < self.epoch:
            self.save()

    def append(self, rows: Sequence[Sequence[MetricsLine]]) -> None:
        """Write `rows`, all rows since the last call, to the folder."""
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
        """Write status and summary to the manifest."""
        if self.folder is not None:
            ended = manifest.end(self.record, "complete" if self.complete else "interrupted", self.epoch, summary)
            self.folder.write(manifest.NAME, manifest.to_json(ended))

    def fail(self, error: BaseException) -> None:
        """Write the error to the manifest, if the folder can still be written."""
        if self.folder is None:
            return
        status = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
        # The manifest names the epoch of the last checkpoint, since later training is lost.
        ended = manifest.end(self.record, status, self._saved, f"{type(error).__name__}: {error}")
        with suppress(RunFolderError):
            self.folder.write(manifest.NAME, manifest.to_json(ended))
