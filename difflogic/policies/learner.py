"""What all algorithms have in common: an actor that decides, and tensors that are kept."""

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy.typing as npt

from difflogic.config.policy import PolicyConfig
from difflogic.devices.device import Device
from difflogic.errors import ConfigError, UsageError
from difflogic.policies.actors import Actor, DenseActor, LogicActor, Sightings, distribution, group_size
from difflogic.policies.automaton import AutomatonActor, votes_of_a_cell
from difflogic.policies.environments import Arrays, Floats, Spaces
from difflogic.tensor import Tensor

KINDS: dict[str, type[LogicActor | DenseActor]] = {
    "logic": LogicActor,
    "automaton": AutomatonActor,
    "mlp": DenseActor,
}


def require_fit(config: PolicyConfig, spaces: Spaces) -> None:
    """Raises ConfigError where an agent of this configuration has no use in such an environment; nothing is made."""
    if config.policy == "logic":
        group_size(config, spaces)
    elif config.policy == "automaton":
        votes_of_a_cell(config, spaces)
    if config.algorithm == "sac":
        require_continuous(config, spaces)


def check_stop(config: PolicyConfig, stop_when_solved: int, population: int) -> None:
    """Raises UsageError where no run of so many agents could be solved so often."""
    if stop_when_solved:
        config.require_episodes()
    if not 0 <= stop_when_solved <= population:
        raise UsageError(f"stop_when_solved counts solved agents: expected at most {population}, the population.")
    if stop_when_solved and config.evaluation.threshold == -math.inf:
        raise UsageError(
            f"{config.subject} names no return that solves it: say one with "
            "--set evaluation.threshold=RETURN, or leave out the stop rule."
        )


def require_continuous(config: PolicyConfig, spaces: Spaces) -> None:
    """Raises ConfigError where actions are discrete."""
    if not spaces.continuous:
        raise ConfigError(
            f"SAC takes continuous actions, but {config.subject} has {spaces.actions} discrete ones: give "
            "--algorithm ppo."
        )


class Learner(ABC):
    """An actor, and what learns."""

    def __init__(
        self, config: PolicyConfig, spaces: Spaces, seen: Sightings, device: Device, wiring: int | None = None
    ) -> None:
        """`wiring`: the seed of its wires, where that is another's.

        Raises ConfigError where the actor's layers do not fit the actions, DeviceError.
        """
        self.config, self.seen, self.device, self.spaces = config, seen, device, spaces
        wired = config if wiring is None else config.with_(seed=wiring)
        self.actor: Actor = KINDS[config.policy](wired, spaces, seen, device)

    @property
    @abstractmethod
    def iteration_steps(self) -> int:
        """Environment steps of an iteration, over all copies; of a classifier rows."""

    @abstractmethod
    def _parts(self) -> dict[str, list[Tensor]]:
        """Everything that learning changes beside the actor; optimisers are called `optimizer` and so on."""

    def _tensors(self) -> dict[str, Tensor]:
        parts = {"actor": self.actor.parameters(), "follower": self.actor.followers(), **self._parts()}
        return {f"{part}.{index}": each for part, tensors in parts.items() for index, each in enumerate(tensors)}

    def _tensor(self, values: npt.ArrayLike) -> Tensor:
        return Tensor(values, self.device)

    def state(self) -> Arrays:
        """Return what `restore` takes."""
        return {name: each.numpy() for name, each in self._tensors().items()}

    def adopt(self, state: Arrays) -> None:
        """Begin with the networks of an agent of this shape; what learning remembers of its past is left behind."""
        for name, each in self._tensors().items():
            if not name.startswith(("optimizer.", "largest.")):
                each.assign(state[name])
        self.actor.adopted()

    def restore(self, state: Arrays) -> None:
        """Go on where `state` was taken. Raises KeyError, and ShapeError where it is of another agent."""
        for name, each in self._tensors().items():
            each.assign(state[name])


class Chooser(Learner):
    """A learner whose actor's preferences say how probable each action is."""

    def __init__(
        self, config: PolicyConfig, spaces: Spaces, seen: Sightings, device: Device, wiring: int | None = None
    ) -> None:
        super().__init__(config, spaces, seen, device, wiring)
        self.distribution = distribution(spaces, device)

    def decide(self, observations: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The action that the environment takes, where nothing is drawn at random."""
        judged, kept = self._stepped(self.actor.features(observations), evaluated=True)
        given: npt.NDArray[Any] = self.distribution.given(self.distribution.best(judged)) + kept
        return given

    def _stepped(self, features: Floats, evaluated: bool) -> tuple[Floats, Any]:
        """Preferences, and what is added to an action for what the agent remembers."""
        given, actor = self._tensor(features), self.actor
        if not self.spaces.memory or not isinstance(actor, LogicActor):
            return (actor.decided if evaluated else actor)(given).numpy(), 0
        judged, kept = actor.stepped(given, evaluated)
        return judged.numpy(), self.spaces.remembered_weight * kept
