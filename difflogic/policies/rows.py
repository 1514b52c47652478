"""The metrics of an agent, one row per iteration, in `metrics.jsonl` and `metrics.csv`."""

import dataclasses
from dataclasses import dataclass

from difflogic.runs.journal import MetricsLine


@dataclass(frozen=True)
class PolicyRow(MetricsLine):
    """One iteration: a rollout and what was learned from it. What an algorithm does not measure is None."""

    iteration: int
    """1 for the first."""
    steps: int
    """Environment steps so far, over all copies."""
    episodes: int
    """Episodes that ended so far."""
    mean_return: float | None
    """Of the last hundred episodes, in which actions are drawn at random; None before the first has ended."""
    mean_length: float | None
    elapsed_s: float
    """Seconds of training so far."""
    steps_per_s: float
    score: float | None = None
    """Mean return of an evaluation, in which nothing is drawn and gates are discrete; where it was due."""
    policy_loss: float | None = None
    value_loss: float | None = None
    entropy: float | None = None
    approx_kl: float | None = None
    clip_fraction: float | None = None
    explained_variance: float | None = None
    """1 - Var(return - value) / Var(return): 1 where the critic knows all, 0 where it knows no more than the mean."""
    temperature: float | None = None
    """The weight of the entropy in SAC."""
    updates: int | None = None
    """Gradient steps of this iteration."""

    @property
    def epoch(self) -> int:
        """Environment steps, by which the rows of agents are counted as those of automata are by epochs."""
        return self.steps


PolicyRow.columns = tuple(field.name for field in dataclasses.fields(PolicyRow))
