"""The words of a configuration choose what agents are made of."""

from __future__ import annotations

import math

from difflogic.config.policy import PolicyConfig
from difflogic.devices.device import Device
from difflogic.errors import ConfigError, UsageError
from difflogic.policies.actors import Actor, DenseActor, LogicActor, Sightings, group_size
from difflogic.policies.automaton import AutomatonActor, votes_of_a_cell
from difflogic.policies.environments import Spaces

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
            f"{config.environment.id} names no return that solves it: say one with "
            "--set evaluation.threshold=RETURN, or leave out the stop rule."
        )


def require_continuous(config: PolicyConfig, spaces: Spaces) -> None:
    """Raises ConfigError where actions are discrete."""
    if not spaces.continuous:
        raise ConfigError(
            f"SAC takes continuous actions, but {config.environment.id} has {spaces.actions} discrete ones: give "
            "--algorithm ppo."
        )


def make_actor(
    config: PolicyConfig, spaces: Spaces, seen: Sightings, device: Device, wiring: int | None = None
) -> Actor:
    """The actor that a configuration asks for; `wiring`: the seed of its wires, where that is another's.

    Raises ConfigError.
    """
    return KINDS[config.policy](config if wiring is None else config.with_(seed=wiring), spaces, seen, device)
