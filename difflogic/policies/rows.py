"""Metrics of an agent, one row per iteration, as in `metrics.jsonl` and `metrics.csv`."""

import dataclasses
from dataclasses import dataclass

from difflogic.runs.journal import MetricsLine


@dataclass(frozen=True)
class PolicyRow(MetricsLine):
    """Metrics of one iteration; a metric is None if the algorithm does not measure it."""

    iteration: int
    """Number of the iteration, counted from 1."""
    steps: int
    """Number of environment steps so far, summed over all copies."""
    episodes: int
    """Number of episodes completed so far."""
    mean_return: float | None
    """Mean return of the last hundred training episodes (sampled actions), or None before any episode has ended."""
    mean_length: float | None
    elapsed_s: float
    """Seconds of training so far."""
    steps_per_s: float
    score: float | None = None
    """Mean return of an evaluation with hard gates and best actions, or None if no evaluation was due."""
    policy_loss: float | None = None
    value_loss: float | None = None
    entropy: float | None = None
    approx_kl: float | None = None
    clip_fraction: float | None = None
    explained_variance: float | None = None
    """1 - Var(return - value) / Var(return), which is 1 for a perfect critic and 0 for a constant critic."""
    temperature: float | None = None
    """Weight of the entropy bonus in SAC."""
    updates: int | None = None
    """Number of gradient steps in this iteration."""

    @property
    def epoch(self) -> int:
        """Number of environment steps so far, used instead of a number of epochs."""
        return self.steps


PolicyRow.columns = tuple(field.name for field in dataclasses.fields(PolicyRow))
