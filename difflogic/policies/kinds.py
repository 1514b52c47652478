"""What agents are made of, by the words of a configuration."""

from __future__ import annotations

from difflogic.config.policy import PolicyConfig
from difflogic.devices.device import Device
from difflogic.policies.actors import Actor, DenseActor, LogicActor, Sightings
from difflogic.policies.automaton import AutomatonActor
from difflogic.policies.environments import Spaces

KINDS: dict[str, type[LogicActor | DenseActor]] = {
    "logic": LogicActor,
    "automaton": AutomatonActor,
    "mlp": DenseActor,
}


def make_actor(config: PolicyConfig, spaces: Spaces, seen: Sightings, device: Device) -> Actor:
    """The actor that a configuration asks for. Raises ConfigError."""
    return KINDS[config.policy](config, spaces, seen, device)
