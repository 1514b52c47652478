"""The metrics of an agent, one row per iteration, in `metrics.jsonl` and `metrics.csv`."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class PolicyRow:
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

    def json_line(self, seed: int | None = None) -> str:
        label = {} if seed is None else {"seed": seed}
        return json.dumps(label | self.to_dict(), allow_nan=False) + "\n"

    def csv_line(self, seed: int | None = None) -> str:
        values = [*([] if seed is None else [seed]), *self.to_dict().values()]
        return ",".join("" if value is None else repr(value) for value in values) + "\n"

    def to_dict(self) -> dict[str, int | float | None]:
        """The row as JSON holds it, with null for what is missing or not finite."""
        return {name: None if isinstance(value, float) and not math.isfinite(value) else value
                for name, value in vars(self).items()}  # fmt: skip

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> PolicyRow:
        """The inverse of `to_dict`; a `seed` beside it does not count. Raises TypeError."""
        return cls(**{name: value for name, value in values.items() if name != "seed"})


COLUMNS = tuple(field.name for field in dataclasses.fields(PolicyRow))
