"""An agent is evaluated: in whole episodes that training never sees, and what agents without a mind reach."""

import math
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic.policies.actors import random_actions
from difflogic.policies.environments import EVALUATION, RANDOM, Environments, Floats, Spaces, Step

Watch = Callable[[Floats, Step], None]
"""Sees the observations before each step of all copies, and what came of it."""
Decide = Callable[[npt.NDArray[Any]], npt.NDArray[Any]]
"""From observations `[N, D]` to what the environment takes, `[N]` or `[N, A]`."""
COPIES = 50
"""So many episodes side by side at most."""


@dataclass(frozen=True)
class Score:
    """Returns and lengths of some episodes."""

    returns: tuple[float, ...]
    lengths: tuple[int, ...]

    @property
    def mean(self) -> float:
        return float(np.mean(self.returns))

    @property
    def spread(self) -> float:
        return float(np.std(self.returns))

    @property
    def mean_length(self) -> float:
        return float(np.mean(self.lengths))

    def reached(self, threshold: float) -> int:
        """Episodes whose return is at least the threshold."""
        return sum(each >= threshold for each in self.returns)

    def to_dict(self) -> dict[str, Any]:
        return {"mean": self.mean, "spread": self.spread, "mean_length": self.mean_length, **asdict(self)}


def evaluate_policy(
    decide: Decide, identifier: str, episodes: int, seed: int, watch: Watch | None = None, memory: int = 0
) -> Score:
    """Play whole episodes, those of `seed`, whoever plays: two policies of one seed meet the same starts.

    `memory`: bits that it remembers, which come with its actions and are shown to it in the next step.

    Raises ConfigError, FaultyEnvironmentError.
    """
    # How many episodes each copy plays is fixed beforehand: of 120 episodes on 50 copies, 20 copies play 3 and 30 play
    # 2. To take the first 120 that end would favour short episodes. A copy that is done plays on without being counted,
    # for all are stepped together.
    copies = min(COPIES, episodes)
    wanted = np.full(copies, episodes // copies) + (np.arange(copies) < episodes % copies)
    found: list[list[tuple[float, int]]] = [[] for _ in range(copies)]
    with closing(Environments(identifier, copies, seed, EVALUATION, memory=memory)) as environments:
        while any(len(each) < want for each, want in zip(found, wanted, strict=True)):
            seen = environments.observations.copy()
            step = environments.step(decide(seen))
            if watch is not None:
                watch(seen, step)
            over = step.terminated | step.truncated
            for copy in np.flatnonzero(over):
                if len(found[copy]) < wanted[copy]:
                    found[copy].append((float(environments.returns[copy]), int(environments.lengths[copy])))
            environments.begin_anew(over)
    every = [each for episodes_of_one in found for each in episodes_of_one]
    return Score(tuple(value for value, _ in every), tuple(length for _, length in every))


def random_policy(spaces: Spaces, seed: int) -> Decide:
    """Uniform actions, whatever is seen."""
    generator = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, RANDOM, EVALUATION])))
    return lambda observations: random_actions(spaces, len(observations), generator)


def constant_policies(spaces: Spaces) -> dict[str, Decide]:
    """Return by name the policies of one action: each of the discrete ones, or the middle of a continuous range."""
    if not spaces.continuous:
        return {f"always {action}": _always(np.int64(action)) for action in range(min(spaces.actions, 16))}
    low, high = spaces.bounds
    return {"always the middle": _always((low + high) / 2)}


def _always(action: npt.NDArray[Any] | np.int64) -> Decide:
    return lambda observations: np.array([action] * len(observations))


def baselines(
    identifier: str, spaces: Spaces, episodes: int, seed: int, watch: Watch | None = None
) -> dict[str, float]:
    """Mean returns of the random policy and of the best constant one, which stand beside every score."""
    found = {"random": evaluate_policy(random_policy(spaces, seed), identifier, episodes, seed, watch).mean}
    best = -math.inf, ""
    for name, decide in constant_policies(spaces).items():
        best = max(best, (evaluate_policy(decide, identifier, episodes, seed, watch).mean, name))
    return found | {best[1]: best[0]}
