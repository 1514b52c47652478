"""Training session: the part of a run that one process trains.

The loop that trains, evaluates, writes metrics and saves is the same for automata and agents. `Automata` and `Agents`
define how an epoch is trained, what an evaluation is, and what a checkpoint contains.
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
    """A stop was requested during an evaluation, which is repeated when the run is resumed."""


@dataclass(frozen=True)
class Rules:
    """Rules that end a run of automata before its last epoch, applied at each evaluation, and its finishing passes."""

    accept: Callable[[Replica, Evaluation], bool] = lambda member, evaluation: evaluation.hard_loss == 0
    """Success test of a model; by default no cell is wrong on its evaluation grids."""
    give_up: Callable[[Sequence[Replica]], str | None] | None = None
    """Early stopping: function that returns the reason to stop these models, or None."""
    finish: Callable[[Circuit], Circuit] | None = None
    """Final change of the solutions that end the run, which must not change the function of the hard circuit."""
    passes: Finishing | None = None
    """Finishing passes for the best model if it is not a solution at the end of the run."""


class Session(ABC, Generic[M, R]):
    """Loop that trains one or more models. Metrics and checkpoints are written to `folder`, unless it is None."""

    columns: ClassVar[Sequence[str]] = COLUMNS
    """Columns of metrics.csv."""

    config: Config | PolicyConfig
    """Configuration, with the seed of the first model."""
    epochs: int
    """Total number of epochs, or of environment steps for agents."""

    def __init__(
        self, request: TrainRequest, placement: Placement, members: Sequence[M], epoch: int, observer: Observer
    ) -> None:
        """Raise UsageError if the request requires more solved models than there are."""
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
        # The last epoch whose rows are written, and the last one whose state is saved. Both may be before `epoch`,
        # the last epoch that was passed to the engine.
        self._reported = self._saved = epoch
        self._clock = time.monotonic()
        self.seconds_before = self.seconds_here = 0.0
        self.notices: tuple[str, ...] = ()
        self.lender: str | None = None
        """Source of the initial circuit, as the end of a sentence; None for a new circuit."""
        self.accepted: list[bool] = []
        """Result of the last evaluation: for each model, True if it is a solution."""
        self.given_up: str | None = None
        """Reason why the run was stopped early; None if it was not."""
        self.complete = False
        """True if all epochs are done, solutions ended the run, or it was stopped early."""

    # defined by automata and agents --------------------------------------------------------------------

    @property
    @abstractmethod
    def info(self) -> EngineInfo:
        """Description of the engine that currently trains."""

    @abstractmethod
    def next_stop(self) -> int:
        """Return the next epoch that is evaluated."""

    @abstractmethod
    def iterate(self, stop: int) -> None:
        """Train towards epoch `stop`, for one call of the engine."""

    @abstractmethod
    def is_logged(self) -> bool:
        """Return whether the rows of this epoch are reported even if the epoch is not evaluated."""

    @abstractmethod
    def report(self, evaluate: bool = False, leaving: bool = False) -> None:
        """Write and report the rows since the last call; if `evaluate`, evaluate and save. Raises BrokenOffError."""

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
        """Return the reason to stop early after this evaluation, else None. A resumed run returns the same."""

    def finish(self) -> None:
        """Run what follows the last epoch: the final evaluation, or the finishing passes. Raises BrokenOffError."""

    def journal(self) -> Sequence[Sequence[MetricsLine]]:
        """Return the earlier rows of each model, with which a resumed run begins."""
        return [[] for _ in self.members]

    def contents(self) -> Mapping[str, bytes]:
        """Return more files for a new run folder, by name."""
        return {}

    # the loop ----------------------------------------------------------------------------------------

    def write_to(self, folder: RunFolder, record: dict[str, Any]) -> Session[M, R]:
        """Write to `folder`, whose manifest is `record`, from now on."""
        self.folder, self.record = folder, record
        return self

    @property
    def seeds(self) -> list[int]:
        return [member.seed for member in self.members]

    @property
    def epochs_here(self) -> int:
        """Number of epochs that this process trained."""
        return self.epoch - self._first_epoch

    @property
    def seconds(self) -> float:
        """Number of seconds of training so far, over all processes."""
        return self.seconds_before + time.monotonic() - self._clock

    @property
    def elapsed_s(self) -> float:
        """Total number of seconds of training, after its end."""
        return self.seconds_before + self.seconds_here

    def train(self, stop: Stop) -> None:
        """Train until the last epoch, enough solutions, early stopping, or `stop`."""
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
        # A resumed run may have ended, or been stopped early, just before its process was killed: then no epoch is
        # trained.
        self.complete = self._is_over()
        while not self.complete and stop.reason is None:
            # Training never goes beyond an evaluation, so that every scheduled evaluation is of a saved state. It may
            # take several calls, and a requested stop takes effect between two of them.
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
        """Return whether the run ends after this epoch: solved, at its last epoch, or stopped early."""
        if 0 < self.stop_when_solved <= sum(self.accepted) or self.epoch >= self.epochs:
            return True
        if self.epoch == self._reported:  # early stopping follows an evaluation, whose rows are reported
            self.given_up = self.reason_to_stop()
        return self.given_up is not None

    def _leave(self) -> None:
        """Save the interrupted state, without an evaluation beyond the schedule."""
        if self._reported < self.epoch:
            self.report(leaving=True)
        if self._saved < self.epoch:
            self.save()

    def append(self, rows: Sequence[Sequence[MetricsLine]]) -> None:
        """Write all rows since the last call."""
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
        """Write the error to the manifest, if the disk still allows it."""
        if self.folder is None:
            return
        status = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
        # The manifest has the epoch of the last checkpoint, since later training is lost.
        ended = manifest.end(self.record, status, self._saved, f"{type(error).__name__}: {error}")
        with suppress(RunFolderError):
            self.folder.write(manifest.NAME, manifest.to_json(ended))
