"""Member of a population: an agent with its environment, iterations, evaluations and saved state."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import cast

import numpy as np

from difflogic.config import table as tables
from difflogic.config.policy import ClassifierConfig, PolicyConfig
from difflogic.config.table import LabelledTable
from difflogic.devices.device import Device
from difflogic.errors import CheckpointError, UsageError
from difflogic.model.circuit import Circuit
from difflogic.policies.actors import LogicActor, Sightings
from difflogic.policies.classifier import Classifier, Rows
from difflogic.policies.environments import Arrays, Environments, Spaces
from difflogic.policies.evaluate import Score, Watch, evaluate_policy
from difflogic.policies.ppo import PPO
from difflogic.policies.rows import PolicyRow
from difflogic.policies.sac import SAC
from difflogic.runs import checkpoint, chosen
from difflogic.runs.checksummed import part_of

RECENT = 100
"""Number of most recent episodes whose returns and lengths are averaged."""
Agent = PPO | SAC | Classifier


def make_agent(config: PolicyConfig, spaces: Spaces, seen: Sightings, device: Device, wiring: int) -> Agent:
    """Make an agent; `seen` scales observations, and `wiring` is the seed of wires.

    Raises ConfigError if the agent does not support the spaces, LimitError or DeviceError.
    """
    if isinstance(config, ClassifierConfig):
        return Classifier(config, spaces, seen, device, wiring)
    return (SAC if config.algorithm == "sac" else PPO)(config.require_episodes(), spaces, seen, device, wiring)


class Member:
    """An agent with its environment, metrics and last score."""

    def __init__(
        self, config: PolicyConfig, device: Device, seen: Sightings | None = None, wiring: int | None = None,
        played: Callable[[], None] = lambda: None, table: LabelledTable | None = None,
    ) -> None:  # fmt: skip
        """Make the environment and the agent.

        Args:
            config: Configuration with the seed of this member.
            device: Device of the networks.
            seen: Mean and spread of the observations, or None to measure them.
            wiring: Seed of the wires, or None for the configuration's seed.
            played: Callback after each random step of the measurement.
            table: Table with the rows for a classifier.
        """
        self.config = config
        self.environments: Environments | Rows
        if isinstance(config, ClassifierConfig):
            self.environments = Rows(config, table)
            seen = seen or self.environments.seen()
        else:
            area, memory = config.require_episodes().environment, config.gates.memory
            self.environments = Environments(area.id, area.n_envs, config.seed, reset=area.reset, memory=memory)
        shown = self.environments.spaces.observations
        if seen is not None and seen.mean.size != shown:
            raise CheckpointError(
                f"The checkpoint was trained on observations of {seen.mean.size} numbers, but {config.subject} has "
                f"{shown}: use the environment or table of the training, or start a new run."
            )
        self._wiring = config.seed if wiring is None else wiring
        scales = seen or Sightings.of(config.require_episodes(), played)
        self.agent = make_agent(config, self.environments.spaces, scales, device, self._wiring)
        self.metrics: list[PolicyRow] = []
        """Metrics of all iterations, one row per iteration."""
        self.score: Score | None = None
        """Score of the last evaluation."""
        self.episodes = 0
        self._recent: deque[tuple[float, int]] = deque(maxlen=RECENT)

    @property
    def seed(self) -> int:
        return self.config.seed

    @property
    def solved(self) -> bool:
        """True if the last evaluation reached the configured threshold."""
        return self.score is not None and self.score.mean >= self.config.evaluation.threshold > -np.inf

    @property
    def circuit(self) -> Circuit | None:
        """Circuit used in evaluations, or None for a dense agent."""
        return self.agent.actor.circuit if isinstance(self.agent.actor, LogicActor) else None

    def iterate(self, iteration: int, working: Callable[[], None], elapsed_s: float) -> PolicyRow:
        """Train iteration `iteration` (from 0), which begins after `elapsed_s`; call `working` after every step."""
        begin, steps = time.monotonic(), self.agent.iteration_steps

        def stepped(environments: Environments, over: np.ndarray) -> None:
            for copy in np.flatnonzero(over):
                self.episodes += 1
                self._recent.append((float(environments.returns[copy]), int(environments.lengths[copy])))
            working()

        agent, world, progress = self.agent, self.environments, iteration / self.iterations
        if isinstance(agent, Classifier):
            measured = agent.iterate(cast("Rows", world), iteration, progress, working)
        else:
            measured = agent.iterate(cast("Environments", world), iteration, progress, stepped)
        seconds = time.monotonic() - begin
        means = np.mean(self._recent, axis=0).tolist() if self._recent else (None, None)
        return PolicyRow(
            iteration=iteration + 1,
            steps=(iteration + 1) * steps,
            episodes=self.episodes,
            mean_return=means[0],
            mean_length=means[1],
            elapsed_s=round(elapsed_s + seconds, 3),
            steps_per_s=round(steps / max(seconds, 1e-9), 1),
            **measured,  # type: ignore[arg-type]
        )

    @property
    def iterations(self) -> int:
        """Number of iterations; the last iteration may exceed the configured number of steps."""
        return -(-self.config.steps // self.agent.iteration_steps)

    def evaluate(self, episodes: int, offset: int = 0, watch: Watch | None = None) -> Score:
        """Score an agent in episodes of seed + `offset`, a classifier on held-out rows (`offset` 0: validation)."""
        if isinstance(self.environments, Rows):
            return self.environments.score(self.agent.decide, held_out=offset > 0)
        name, seed = self.config.subject, self.seed + offset
        return evaluate_policy(self.agent.decide, name, episodes, seed, watch, self.config.gates.memory)

    def state(self) -> Arrays:
        """Return the member's state as arrays by name, for `restored`."""
        scales = self.agent.seen
        parts = {"agent": self.agent.state(), "environments": self.environments.state()}
        return {
            "seen.mean": scales.mean,
            "seen.spread": scales.spread,
            "wiring": np.array(self._wiring, dtype=np.int64),
            "recent": np.array(self._recent, dtype=np.float64).reshape(-1, 2),
            "episodes": np.array(self.episodes, dtype=np.int64),
            **{f"{part}.{name}": array for part, arrays in parts.items() for name, array in arrays.items()},
        }

    @classmethod
    def restored(
        cls, config: PolicyConfig, device: Device, state: Arrays, table: LabelledTable | None = None
    ) -> Member:
        """Return a member with a saved state. Raises CheckpointError if the state does not fit."""
        try:
            seen = Sightings(**part_of(state, "seen."))
            member = cls(config, device, seen, int(state["wiring"]), table=table)
            member.agent.restore(part_of(state, "agent."))
            member.environments.restore(part_of(state, "environments."))
            member.episodes = int(state["episodes"])
            member._recent.extend((float(value), int(length)) for value, length in state["recent"])
        except (KeyError, ValueError, UsageError) as error:
            raise CheckpointError(f"The checkpoint does not match its configuration: {error}") from error
        return member

    @classmethod
    def begun(cls, config: PolicyConfig, device: Device, source: Arrays, table: LabelledTable | None = None) -> Member:
        """Return a new member with the parameters, wires and scales in `source`, the state of another member."""
        member = cls(config, device, Sightings(**part_of(source, "seen.")), int(source["wiring"]), table=table)
        member.agent.adopt(part_of(source, "agent."))
        return member


def restored(path: Path, number: int | None = None) -> Member:
    """Load member `number` of a run (counted from 1, default 1) on the CPU. Raises UsageError or CheckpointError."""
    folder = chosen.run_folder(path)
    saved, index = checkpoint.read_agents(folder), (number or 1) - 1
    if not 0 <= index < len(saved.members):
        raise UsageError(f"Unknown model {number} of {path}: expected 1 to {len(saved.members)}.")
    state = saved.members[index]
    return Member.restored(state.config, Device("cpu"), state.arrays, tables.of_run(state.config, folder))
