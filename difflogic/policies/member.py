"""One agent with its environment: its iterations, its evaluations, and what is kept of it."""

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
"""Episodes over which returns are averaged."""
Agent = PPO | SAC | Classifier


def make_agent(
    config: PolicyConfig, spaces: Spaces, seen: Sightings, device: Device, wiring: int | None = None
) -> Agent:
    """`wiring`: the seed of its wires, where that is another's.

    Raises ConfigError where it does not fit the spaces, LimitError, DeviceError.
    """
    if isinstance(config, ClassifierConfig):
        return Classifier(config, spaces, seen, device, wiring)
    return (SAC if config.algorithm == "sac" else PPO)(config.require_episodes(), spaces, seen, device, wiring)


class Member:
    """One agent with its environment, and what came of it so far."""

    def __init__(
        self, config: PolicyConfig, device: Device, seen: Sightings | None = None, wiring: int | None = None,
        played: Callable[[], None] = lambda: None, table: LabelledTable | None = None,
    ) -> None:  # fmt: skip
        """`wiring`: the seed of its wires, where it has those of another agent. `played`: hears of random steps.

        `table`: what a classifier learns.
        """
        self.config = config
        self.environments: Environments | Rows
        if isinstance(config, ClassifierConfig):
            self.environments = Rows(config, table)
            seen = seen or self.environments.seen()
        else:
            area = config.require_episodes().environment
            self.environments = Environments(
                area.id, area.n_envs, config.seed, reset=area.reset, memory=config.gates.memory
            )
        shown = self.environments.spaces.observations
        if seen is not None and seen.mean.size != shown:
            raise CheckpointError(
                f"The checkpoint is of an environment that shows {seen.mean.size} numbers, but {config.subject} "
                f"shows {shown}: install the one that it was trained in, or start a new run."
            )
        self._wiring = config.seed if wiring is None else wiring
        given = seen or Sightings.of(config.require_episodes(), played)
        self.agent = make_agent(config, self.environments.spaces, given, device, self._wiring)
        self.metrics: list[PolicyRow] = []
        """One row per iteration, from the first on."""
        self.score: Score | None = None
        """Of the last evaluation."""
        self.episodes = 0
        self._recent: deque[tuple[float, int]] = deque(maxlen=RECENT)

    @property
    def seed(self) -> int:
        return self.config.seed

    @property
    def solved(self) -> bool:
        """Return whether the last evaluation reached the threshold."""
        return self.score is not None and self.score.mean >= self.config.evaluation.threshold > -np.inf

    @property
    def circuit(self) -> Circuit | None:
        """The gates that it is evaluated with; None of a dense agent."""
        return self.agent.actor.circuit if isinstance(self.agent.actor, LogicActor) else None

    def iterate(self, iteration: int, working: Callable[[], None], elapsed_s: float) -> PolicyRow:
        """A rollout and what is learned from it; `working` hears of every step."""
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
        """Iterations that the configuration's steps make; the last one may go a little beyond them."""
        return -(-self.config.steps // self.agent.iteration_steps)

    def evaluate(self, episodes: int, offset: int = 0, watch: Watch | None = None) -> Score:
        """The agent's best actions on episodes of its own seed; of a classifier rows not learned."""
        if isinstance(self.environments, Rows):
            return self.environments.score(self.agent.decide, held_out=offset > 0)
        name, seed = self.config.subject, self.seed + offset
        return evaluate_policy(self.agent.decide, name, episodes, seed, watch, self.config.gates.memory)

    def state(self) -> Arrays:
        """Return what `restore` takes."""
        seen = self.agent.seen
        parts = {"agent": self.agent.state(), "environments": self.environments.state()}
        return {
            "seen.mean": seen.mean,
            "seen.spread": seen.spread,
            "wiring": np.array(self._wiring, dtype=np.int64),
            "recent": np.array(self._recent, dtype=np.float64).reshape(-1, 2),
            "episodes": np.array(self.episodes, dtype=np.int64),
            **{f"{part}.{name}": array for part, arrays in parts.items() for name, array in arrays.items()},
        }

    @classmethod
    def restored(
        cls, config: PolicyConfig, device: Device, state: Arrays, table: LabelledTable | None = None
    ) -> Member:
        """The member whose state this is. Raises CheckpointError."""
        try:
            seen = Sightings(**part_of(state, "seen."))
            member = cls(config, device, seen, int(state["wiring"]), table=table)
            member.agent.restore(part_of(state, "agent."))
            member.environments.restore(part_of(state, "environments."))
            member.episodes = int(state["episodes"])
            member._recent.extend((float(value), int(length)) for value, length in state["recent"])
        except (KeyError, ValueError, UsageError) as error:
            raise CheckpointError(f"The checkpoint holds no agent of its configuration: {error}") from error
        return member

    @classmethod
    def begun(cls, config: PolicyConfig, device: Device, lender: Arrays, table: LabelledTable | None = None) -> Member:
        """One that has not learned yet, but begins with what another one of its shape has learned, by its state.

        What the lender saw before its own training decides on thresholds and scales: they go with its parameters.
        """
        member = cls(config, device, Sightings(**part_of(lender, "seen.")), int(lender["wiring"]), table=table)
        member.agent.adopt(part_of(lender, "agent."))
        return member


def restored(path: Path, number: int | None = None) -> Member:
    """One agent of a run, on the processor: the first unless one is counted. Raises UsageError, CheckpointError."""
    folder = chosen.run_folder(path)
    saved, index = checkpoint.read_agents(folder), (number or 1) - 1
    if not 0 <= index < len(saved.members):
        raise UsageError(f"There is no member {number} in {path}: it has 1 to {len(saved.members)}.")
    one = saved.members[index]
    return Member.restored(one.config, Device("cpu"), one.arrays, tables.of_run(one.config, folder))
