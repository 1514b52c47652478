"""Evaluate policies in complete episodes that training never plays, and compute simple baselines."""

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
"""Callback after each step of all copies, which receives the observations before the step, and the step's result."""
Decide = Callable[[npt.NDArray[Any]], npt.NDArray[Any]]
"""Policy that maps observations `[N, D]` to discrete actions `[N]` or continuous actions `[N, A]`."""
COPIES = 50
"""Maximum number of environment copies, which play episodes together."""


@dataclass(frozen=True)
class Score:
    """Returns and lengths of evaluated episodes."""

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
        """Return the number of episodes with a return of at least `threshold`."""
        return sum(value >= threshold for value in self.returns)

    def to_dict(self) -> dict[str, Any]:
        return {"mean": self.mean, "spread": self.spread, "mean_length": self.mean_length, **asdict(self)}


def evaluate_policy(
    decide: Decide, identifier: str, episodes: int, seed: int, watch: Watch | None = None, memory: int = 0
) -> Score:
    """Play complete episodes with a policy, and return its score.

    Args:
        decide: Policy to evaluate.
        identifier: Name of the environment.
        episodes: Number of episodes.
        seed: Seed of the episodes, which alone determines initial states, so that policies can be compared.
        watch: Callback after each step, or None.
        memory: Number of remembered bits, which the policy adds to an action and receives in the next observation.

    Raises:
        ConfigError: If the environment is unknown or has unsupported spaces.
        FaultyEnvironmentError: If the environment raises an error or returns a number that is not finite.
    """
    # Each copy plays a fixed number of episodes: of 120 episodes on 50 copies, 20 copies play 3 and 30 play 2. Counting
    # the first 120 episodes that end would favour short ones. A copy that is done continues without being counted,
    # since all copies are stepped together.
    copies = min(COPIES, episodes)
    quotas = np.full(copies, episodes // copies) + (np.arange(copies) < episodes % copies)
    scores: list[list[tuple[float, int]]] = [[] for _ in range(copies)]
    with closing(Environments(identifier, copies, seed, EVALUATION, memory=memory)) as environments:
        while any(len(each) < quota for each, quota in zip(scores, quotas, strict=True)):
            observations = environments.observations.copy()
            step = environments.step(decide(observations))
            if watch is not None:
                watch(observations, step)
            over = step.terminated | step.truncated
            for copy in np.flatnonzero(over):
                if len(scores[copy]) < quotas[copy]:
                    scores[copy].append((float(environments.returns[copy]), int(environments.lengths[copy])))
            environments.begin_anew(over)
    results = [result for results_of_copy in scores for result in results_of_copy]
    return Score(tuple(value for value, _ in results), tuple(length for _, length in results))


def random_policy(spaces: Spaces, seed: int) -> Decide:
    """Return a policy of uniformly random actions, sampled with `seed`."""
    generator = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, RANDOM, EVALUATION])))
    return lambda observations: random_actions(spaces, len(observations), generator)


def constant_policies(spaces: Spaces) -> dict[str, Decide]:
    """Return constant policies by name: the first 16 discrete actions, or the middle of the continuous range."""
    if not spaces.continuous:
        return {f"always {action}": _always(np.int64(action)) for action in range(min(spaces.actions, 16))}
    low, high = spaces.bounds
    return {"always the middle": _always((low + high) / 2)}


def _always(action: npt.NDArray[Any] | np.int64) -> Decide:
    return lambda observations: np.array([action] * len(observations))


def baselines(
    identifier: str, spaces: Spaces, episodes: int, seed: int, watch: Watch | None = None
) -> dict[str, float]:
    """Return the mean returns, by name, of a random policy and of the best constant policy."""
    means = {"random": evaluate_policy(random_policy(spaces, seed), identifier, episodes, seed, watch).mean}
    best = -math.inf, ""
    for name, decide in constant_policies(spaces).items():
        best = max(best, (evaluate_policy(decide, identifier, episodes, seed, watch).mean, name))
    return means | {best[1]: best[0]}
