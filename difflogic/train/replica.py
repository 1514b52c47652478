"""Model of a run in training. A run has one model, or a population of models."""

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
    """Model of a run, with its training state and metrics so far."""

    job: Job
    state: TrainState
    """Last state that was copied from the engine; at checkpoints and at the end, the state after the last epoch."""
    metrics: list[Row]
    """Metrics of all epochs, one row per epoch."""
    best: int | None = None
    """Lowest hard loss in scheduled evaluations so far; None before the first."""

    __repr__ = brief

    @property
    def seed(self) -> int:
        return self.job.config.seed

    @property
    def circuit(self) -> Circuit:
        return self.job.circuit.with_logits(self.state.logits)

    @property
    def solved(self) -> bool:
        """True if the last evaluation found no wrong cell on any evaluation grid."""
        return self.wrong == 0

    @property
    def first_solved(self) -> int | None:
        """First epoch with an evaluation without wrong cells; None if there is none."""
        return next((row.epoch for row in self.metrics if row.hard_loss == 0), None)

    def evaluated(self, row: Row, result: Evaluation) -> Row:
        """Return the current epoch's `row` with `result` added; if the epoch is scheduled, also update `best`."""
        # The last epoch is evaluated even if it is not on the schedule. Then `best` does not change, so that a run that
        # continues from here equals a run that never ended.
        best = result.hard_loss if self.best is None else min(self.best, result.hard_loss)
        if schedule.is_evaluated(row.epoch, self.job.config.train.eval_interval):
            self.best = best
        return row.evaluated(result, best, undecided_gates(self.circuit.gate_logits, self.circuit.wire_logits))

    @property
    def wrong(self) -> int | None:
        """Number of mismatches at the last evaluation; None before the first."""
        row = last_evaluated(self.metrics)
        return None if row is None else row.hard_loss

    def checkpoint(self, elapsed_s: float) -> ModelState:
        return ModelState(self.job.config, self.circuit, self.state, self.best, elapsed_s)


def member_of(members: Sequence[Replica], state: ModelState) -> Replica:
    """Return the model that has the seed of a saved state."""
    return next(member for member in members if member.seed == state.config.seed)


def best_of(members: Sequence[Replica]) -> int:
    """Return the index of the best model: fewest mismatches at the last evaluation, then fewest active gates."""
    if len(members) == 1:
        return 0
    wrong = [float("inf") if member.wrong is None else member.wrong for member in members]
    # Counting active gates takes time, so they are only counted for models with the fewest mismatches.
    tied = [index for index, count in enumerate(wrong) if count == min(wrong)]
    return min(tied, key=lambda index: active_gates(members[index].circuit.gate_logits))
