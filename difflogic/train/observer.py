"""A run reports to an observer: the command line prints it, a notebook may draw it."""

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

if TYPE_CHECKING:  # half of what it loads is for agents alone
    from difflogic.policies.member import Member
    from difflogic.policies.rows import PolicyRow


@dataclass(frozen=True)
class Beginning:
    """A beginning holds what is known before the first epoch."""

    config: Config | PolicyConfig
    engine: EngineInfo
    reason: str
    path: Path | None
    """The run folder; None where the run stays in memory."""
    epoch: int
    """Epochs done already: 0 for a new run."""
    epochs: int
    """In all; of agents environment steps."""
    population: int = 1
    """Models, with seeds counted up from the configuration's."""
    lender: str | None = None
    """Whose circuit it begins with, in one sentence; None where it begins with its own."""

    @property
    def about(self) -> str:
        """Return what is trained, in a few words."""
        config = self.config
        if isinstance(config, PolicyConfig):
            if isinstance(config, ClassifierConfig):
                table = config.table
                what = f"{table.rows} rows of {len(table.features)} numbers, {len(table.classes)} classes"
                return f"{what}, {config.made_of}; {config.steps} rows seen"
            return f"{config.subject}, {config.made_of}; {config.algorithm} for {config.steps} steps"
        task, model = config.task, config.model
        return (
            f"{model.gates} soft gates, {task.width}x{task.height} grid, {model.channels} "
            f"channel{'s' if model.channels != 1 else ''}, {task.steps} step{'s' if task.steps != 1 else ''}, batch "
            f"{config.train.batch}"
        )


@dataclass(frozen=True)
class Standing:
    """A standing says how the members of a population are doing at an epoch, in the order of their seeds."""

    seeds: tuple[int, ...]
    rows: tuple[Row, ...]
    """Each member's row of this epoch."""
    judged: tuple[Row | None, ...]
    """Each member's last row that was evaluated."""

    @property
    def solved(self) -> int:
        """Members without a wrong value when they were last evaluated."""
        return sum(row is not None and row.hard_loss == 0 for row in self.judged)

    @property
    def epoch(self) -> int:
        return self.rows[0].epoch

    @property
    def soft_losses(self) -> tuple[float, float]:
        """The lowest and the median of those that are finite, else NaN."""
        # Models that search have no soft loss, and the median of the others still says something.
        losses = [row.soft_loss for row in self.rows if not math.isnan(row.soft_loss)] or [math.nan]
        return min(losses), statistics.median(losses)


class Observer:
    """Hears what happens in a training, and may end it. Override the methods that you want to hear.

    Calls come from the thread that trains, so a slow method slows the training. Of agents an epoch is an environment
    step, and `advanced` comes after each iteration.

        >>> class Losses(difflogic.Observer):
        ...     def logged(self, row, judged):
        ...         print(f"epoch {row.epoch}: {row.soft_loss:.1f}")
        >>> run = difflogic.Trainer(config, engine).run(epochs=1, observer=Losses())
        epoch 1: 22.5
    """

    stop: Stop | None = None
    """Request that ends the run, saved; None: the first signal that `signals.watched` names makes it."""
    log_interval: int = 10
    """Epochs between two rows of an automaton that are `logged`."""

    def began(self, beginning: Beginning) -> None:
        """The first epoch is about to begin."""

    def advanced(self, epoch: int) -> None:
        """Epochs up to this one were given to the engine."""

    def working(self) -> None:
        """There was one more step of an environment: of an agent that learns, or in the episodes of an evaluation."""

    def wants_states(self) -> bool:
        """Return whether to be `shown` the states of this moment, which are then downloaded. Asked after `advanced`."""
        return False

    def shown(self, members: Sequence[Replica]) -> None:
        """Here are the models, with their states of this moment to read."""

    def judging(self, epoch: int) -> None:
        """The models of this epoch are about to be evaluated, then saved."""

    def judged(self, members: Sequence[Replica] | Sequence[Member]) -> None:
        """The models were evaluated; here they are, with their states of that epoch to read."""

    def attempted(self, attempt: Attempt) -> None:
        """An attempt of a run with restarts begins or continues (its status is `running`), or has ended."""

    def logged(self, row: Row, judged: Row | None) -> None:
        """A row is due: at the log interval, an evaluation or the end. `judged` is the last that was evaluated."""

    def compared(self, standing: Standing) -> None:
        """A population reports here what a single run reports to `logged`."""

    def iterated(self, rows: Sequence[PolicyRow]) -> None:
        """An iteration of agents: the row of each, which has a score where it was evaluated."""

    def placed(self, engine: EngineInfo, reason: str) -> None:
        """The rest of the run is on this engine, by what the first epochs took."""

    def noticed(self, text: str) -> None:
        """There is something that a person should know, in one sentence."""

    def saved(self, epoch: int) -> None:
        """A checkpoint of this epoch is on the disk."""

    def wants_pictures(self) -> bool:
        """Return whether to draw film and curves, which takes longer than a short run does. Asked at the end."""
        return True

    def ending(self) -> None:
        """There are no more epochs; the results are about to be written."""
