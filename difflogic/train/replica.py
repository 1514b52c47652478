"""One model of a run: a run has one, or a population of them."""

from collections.abc import Sequence
from dataclasses import dataclass

from difflogic.config import schedule
from difflogic.engine.api import Evaluation
from difflogic.engine.job import Job, TrainState
from difflogic.model.circuit import Circuit
from difflogic.model.statistics import active_gates, undecided_gates
from difflogic.runs.checkpoint import ModelState
from difflogic.runs.journal import Row, last_evaluated
from difflogic.system.brief import brief


@dataclass(eq=False)
class Replica:
    """A replica holds what a model learns, and what came of it so far."""

    job: Job
    state: TrainState
    """As last brought home from the engine: complete at checkpoints and at the end."""
    metrics: list[Row]
    """One row per epoch, from the first on."""
    best: int | None = None
    """Lowest hard loss of the scheduled evaluations so far."""

    __repr__ = brief

    @property
    def seed(self) -> int:
        return self.job.config.seed

    @property
    def circuit(self) -> Circuit:
        return self.job.circuit.with_logits(self.state.logits)

    @property
    def solved(self) -> bool:
        """True where the last evaluation found no wrong value on any probe."""
        return self.wrong == 0

    @property
    def first_solved(self) -> int | None:
        """The first epoch whose evaluation found no wrong value."""
        return next((row.epoch for row in self.metrics if row.hard_loss == 0), None)

    def judge(self, row: Row, result: Evaluation) -> Row:
        """The row with its evaluation, `state` being of its epoch.

        One beyond the schedule leaves no trace in later rows and checkpoints.
        """
        # An end that is not on the schedule is evaluated too, and its row shows the lowest loss so far, but `best`
        # stays, so that a run that goes on from here is the same as one that never ended.
        best = result.hard_loss if self.best is None else min(self.best, result.hard_loss)
        if schedule.is_evaluated(row.epoch, self.job.config.train.eval_interval):
            self.best = best
        return row.evaluated(result, best, undecided_gates(self.circuit.gate_logits, self.circuit.wire_logits))

    @property
    def wrong(self) -> int | None:
        """Wrong values at the last evaluation."""
        judged = last_evaluated(self.metrics)
        return None if judged is None else judged.hard_loss

    def checkpoint(self, elapsed_s: float) -> ModelState:
        return ModelState(self.job.config, self.circuit, self.state, self.best, elapsed_s)


def member_of(members: Sequence[Replica], state: ModelState) -> Replica:
    """The model that a state is of, as it stands now."""
    return next(each for each in members if each.seed == state.config.seed)


def best_of(members: Sequence[Replica]) -> int:
    """Index of the best: fewest wrong values at the last evaluation, then fewest active gates, then the first."""
    if len(members) == 1:
        return 0
    wrong = [float("inf") if member.wrong is None else member.wrong for member in members]
    # Counting the active gates of many models takes a moment, so it is done only among equals.
    tied = [index for index, each in enumerate(wrong) if each == min(wrong)]
    return min(tied, key=lambda index: active_gates(members[index].circuit.gate_logits))
