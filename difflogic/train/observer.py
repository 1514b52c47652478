"""Observers, which receive the reports of a run: the command line prints them, a notebook draws them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from difflogic.config.policy import ClassifierConfig, PolicyConfig
from difflogic.config.schema import Config
from difflogic.engine.api import EngineInfo
from difflogic.runs.attempts import Attempt
from difflogic.runs.journal import Row
from difflogic.train.replica import Replica
from difflogic.train.signals import Stop

if TYPE_CHECKING:  # these modules import many others that only agents need
    from difflogic.policies.member import Member
    from difflogic.policies.rows import PolicyRow


@dataclass(frozen=True)
class Beginning:
    """Report that a run begins or continues, before the first epoch of this process."""

    config: Config | PolicyConfig
    engine: EngineInfo
    reason: str
    path: Path | None
    """Run folder; None if the run is in memory."""
    epoch: int
    """Last epoch before this process: 0 for a new run."""
    epochs: int
    """Total number of epochs, or of environment steps for agents."""
    population: int = 1
    """Number of models, with consecutive seeds from the seed of the configuration."""
    lender: str | None = None
    """Description of the source run of the initial circuit, as the end of a sentence; None for a new circuit."""

    @property
    def about(self) -> str:
        """Description of the task, the circuit and the budget in one line."""
        config = self.config
        if isinstance(config, PolicyConfig):
            if isinstance(config, ClassifierConfig):
                table = config.table
                rows = f"{table.rows} rows of {len(table.features)} numbers, {len(table.classes)} classes"
                return f"{rows}, {config.made_of}; {config.steps} rows seen"
            return f"{config.subject}, {config.made_of}; {config.algorithm} for {config.steps} steps"
        task, model = config.task, config.model
        return (
            f"{model.gates} soft gates, {task.width}x{task.height} grid, {model.channels} "
            f"channel{'s' if model.channels != 1 else ''}, {task.steps} step{'s' if task.steps != 1 else ''}, batch "
            f"{config.train.batch}"
        )


@dataclass(frozen=True)
class Standing:
    """Metrics of all models of a population at one epoch, in the order of their seeds."""

    seeds: tuple[int, ...]
    rows: tuple[Row, ...]
    """Row of each member at this epoch."""
    judged: tuple[Row | None, ...]
    """Last evaluated row of each member."""

    @property
    def solved(self) -> int:
        """Number of members without a wrong cell at their last evaluation."""
        return sum(row is not None and row.hard_loss == 0 for row in self.judged)

    @property
    def epoch(self) -> int:
        return self.rows[0].epoch

    @property
    def soft_losses(self) -> tuple[float, float]:
        """Minimum and median of the soft losses of the models that have one; NaN if no model has one."""
        # A search has no soft loss, but other models may still be in training.
        losses = [row.soft_loss for row in self.rows if not math.isnan(row.soft_loss)] or [math.nan]
        return min(losses), statistics.median(losses)


class Observer:
    """Base class of observers, which receive reports during training and may end it. Override the methods you need.

    The training thread calls the methods, so a slow method slows the training. For agents, an epoch is an
    environment step, and `advanced` is called after each iteration.

        >>> class Losses(difflogic.Observer):
        ...     def logged(self, row, evaluated):
        ...         print(f"epoch {row.epoch}: {row.soft_loss:.1f}")
        >>> run = difflogic.Trainer(config, engine).run(epochs=1, observer=Losses())
        epoch 1: 22.5
    """

    stop: Stop | None = None
    """Stop request by which the observer ends the run after a save; None: only signals end it (`signals.watched`)."""
    log_interval: int = 10
    """Number of epochs between two calls of `logged`."""

    def began(self, beginning: Beginning) -> None:
        """Receive a report before the first epoch."""

    def advanced(self, epoch: int) -> None:
        """Receive the number of the last epoch that was passed to the engine."""

    def working(self) -> None:
        """Receive a heartbeat after each environment step of agents, also in evaluations."""

    def wants_states(self) -> bool:
        """Return whether to download the states for `shown`; called after `advanced`."""
        return False

    def shown(self, members: Sequence[Replica]) -> None:
        """Receive the models with their current states, which must not be changed."""

    def judging(self, epoch: int) -> None:
        """Receive the number of an epoch before it is evaluated and saved."""

    def judged(self, members: Sequence[Replica] | Sequence[Member]) -> None:
        """Receive the models after an evaluation, with their states at its epoch, which must not be changed."""

    def attempted(self, attempt: Attempt) -> None:
        """Receive an attempt of a run with restarts when it begins or continues (`running`), and when it ends."""

    def logged(self, row: Row, evaluated: Row | None) -> None:
        """Receive the row of an epoch and the last evaluated row, at each log interval, each evaluation and the end."""

    def compared(self, standing: Standing) -> None:
        """Receive the metrics of a population; this method is called in place of `logged`."""

    def iterated(self, rows: Sequence[PolicyRow]) -> None:
        """Receive the row of each agent after an iteration; after an evaluation the rows have scores."""

    def placed(self, engine: EngineInfo, reason: str) -> None:
        """Receive the engine that a benchmark in the first epochs chose for later epochs, and the reason."""

    def noticed(self, text: str) -> None:
        """Receive a notice for the user: a sentence, or a few."""

    def saved(self, epoch: int) -> None:
        """Receive the epoch of a saved checkpoint."""

    def wants_pictures(self) -> bool:
        """Return whether to draw the rollout and the curves at the end, which may take longer than a short run."""
        return True

    def ending(self) -> None:
        """Receive the notification that training has ended, before the results are written."""
