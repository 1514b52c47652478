"""One model of a run: a run has one, or a population of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from difflogic.checkpoint import Checkpoint
from difflogic.circuit import Circuit
from difflogic.engine import Evaluation, Job, TrainState
from difflogic.train import schedule
from difflogic.train.journal import Row, last_evaluated
from difflogic.train.summary import active_gates, undecided_gates


@dataclass(eq=False)
class Member:
    """What a model learns, and what came of it so far."""

    job: Job
    state: TrainState
    """As last brought home from the engine: complete at checkpoints and at the end."""
    metrics: list[Row]
    """One row per epoch, from the first on."""
    best: int | None = None
    """Lowest hard loss of the scheduled evaluations so far."""

    @property
    def seed(self) -> int:
        return self.job.config.seed

    @property
    def circuit(self) -> Circuit:
        """With the trained logits."""
        return self.job.circuit.with_logits(self.state.logits)

    @property
    def solved(self) -> bool:
        """True where the last evaluation found no wrong value on any probe."""
        judged = last_evaluated(self.metrics)
        return judged is not None and judged.hard_loss == 0

    @property
    def first_solved(self) -> int | None:
        """The first epoch whose evaluation found no wrong value."""
        return next((row.epoch for row in self.metrics if row.hard_loss == 0), None)

    def judge(self, row: Row, result: Evaluation) -> Row:
        """The row with its evaluation, `state` being of its epoch.

        One beyond the schedule leaves no trace in later rows and checkpoints.
        """
        best = result.hard_loss if self.best is None else min(self.best, result.hard_loss)
        if schedule.is_evaluated(row.epoch, self.job.config.train.eval_interval):
            self.best = best
        return row.evaluated(result, best, undecided_gates(self.state.logits))

    def checkpoint(self, elapsed_s: float) -> Checkpoint:
        return Checkpoint(self.job.config, self.circuit, self.state, self.best, elapsed_s)


def leader(members: Sequence[Member]) -> int:
    """Index of the best: fewest wrong values at the last evaluation, then fewest active gates, then the first."""
    if len(members) == 1:
        return 0
    wrong = [_wrong(member) for member in members]
    tied = [index for index, each in enumerate(wrong) if each == min(wrong)]
    return min(tied, key=lambda index: active_gates(members[index].state.logits))


def _wrong(member: Member) -> float:
    judged = last_evaluated(member.metrics)
    return float("inf") if judged is None or judged.hard_loss is None else judged.hard_loss
