"""Base classes of the learning algorithms, which have an actor and a training state that can be saved."""

import math
from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy.typing as npt

from difflogic.config.policy import PolicyConfig
from difflogic.devices.device import Device
from difflogic.errors import ConfigError, UsageError
from difflogic.policies.actors import Actor, DenseActor, LogicActor, Sightings, group_size
from difflogic.policies.automaton import AutomatonActor, votes_of_a_cell
from difflogic.policies.distributions import Distribution, distribution
from difflogic.policies.environments import Arrays, Floats, Spaces
from difflogic.tensor import Tensor

KINDS: dict[str, type[LogicActor | DenseActor]] = {"logic": LogicActor, "automaton": AutomatonActor, "mlp": DenseActor}


def require_fit(config: PolicyConfig, spaces: Spaces) -> None:
    """Raise ConfigError if an agent of this configuration does not support the environment's spaces."""
    if config.policy == "logic":
        group_size(config, spaces)
    elif config.policy == "automaton":
        votes_of_a_cell(config, spaces)
    if config.algorithm == "sac":
        require_continuous(config, spaces)


def check_stop(config: PolicyConfig, stop_when_solved: int, population: int) -> None:
    """Raise UsageError if a run of `population` agents can never have `stop_when_solved` solved agents."""
    if stop_when_solved:
        config.require_episodes()
    if not 0 <= stop_when_solved <= population:
        raise UsageError(f"stop_when_solved must be 0 to {population}, the population, got {stop_when_solved}.")
    if stop_when_solved and config.evaluation.threshold == -math.inf:
        raise UsageError(
            f"{config.subject} defines no return at which it is solved: set one with "
            "--set evaluation.threshold=RETURN, or omit `stop_when_solved` and `until_solved`."
        )


def require_continuous(config: PolicyConfig, spaces: Spaces) -> None:
    """Raise ConfigError if actions are discrete."""
    if not spaces.continuous:
        raise ConfigError(
            f"SAC requires continuous actions, but {config.subject} has {spaces.actions} discrete actions: use "
            "--algorithm ppo."
        )


class Learner(ABC):
    """Actor together with its training state."""

    def __init__(self, config: PolicyConfig, spaces: Spaces, seen: Sightings, device: Device, wiring: int) -> None:
        """Make the actor; `seen` scales observations, and `wiring` is the seed of wires.

        Raises ConfigError if the layers do not fit the actions, and DeviceError if the device cannot be used.
        """
        self.config, self.seen, self.device, self.spaces = config, seen, device, spaces
        self.actor: Actor = KINDS[config.policy](config.with_(seed=wiring), spaces, seen, device)

    @property
    @abstractmethod
    def iteration_steps(self) -> int:
        """Number of environment steps per iteration, summed over all copies; for a classifier, number of rows."""

    @abstractmethod
    def _parts(self) -> dict[str, list[Tensor]]:
        """Return all tensors to save except the actor's, by name; names of optimizer states begin with `optimizer`."""

    def _tensors(self) -> dict[str, Tensor]:
        parts = {"actor": self.actor.parameters(), "follower": self.actor.followers(), **self._parts()}
        return {f"{part}.{index}": tensor for part, tensors in parts.items() for index, tensor in enumerate(tensors)}

    def _tensor(self, values: npt.ArrayLike) -> Tensor:
        return Tensor(values, self.device)

    def state(self) -> Arrays:
        """Return the training state as arrays by name, for `restore`."""
        return {name: tensor.numpy() for name, tensor in self._tensors().items()}

    def adopt(self, state: Arrays) -> None:
        """Copy the networks from the `state` of another agent with equal shapes, but not its optimizers."""
        for name, tensor in self._tensors().items():
            if not name.startswith(("optimizer.", "largest.")):
                tensor.assign(state[name])
        self.actor.restored()
        self.actor.adopted()

    def restore(self, state: Arrays) -> None:
        """Restore a training state. Raises KeyError or ShapeError if it is of an agent with other shapes."""
        for name, tensor in self._tensors().items():
            tensor.assign(state[name])
        self.actor.restored()


class Chooser(Learner):
    """Learner whose actor outputs the parameters of a distribution of actions."""

    @cached_property
    def distribution(self) -> Distribution:
        """Distribution of actions, which may have trainable parameters."""
        return distribution(self.spaces, self.device)

    def decide(self, observations: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the best actions for `observations`, without sampling, encoded with any remembered bits."""
        preferences, remembered = self._stepped(self.actor.features(observations), evaluated=True)
        actions: npt.NDArray[Any] = self.distribution.given(self.distribution.best(preferences)) + remembered
        return actions

    def _stepped(self, features: Floats, evaluated: bool) -> tuple[Floats, Any]:
        """Return preferences `[N, A]`, and numbers that encode remembered bits, `[N]` or 0, to add to the actions."""
        inputs, actor = self._tensor(features), self.actor
        if not self.spaces.memory or not isinstance(actor, LogicActor):
            return (actor.decided if evaluated else actor)(inputs).numpy(), 0
        preferences, remembered = actor.stepped(inputs, evaluated)
        return preferences.numpy(), self.spaces.remembered_weight * remembered
