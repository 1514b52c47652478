"""An agent, whole: what acts and what learns, by the algorithm that a configuration names."""

from __future__ import annotations

from difflogic.config.choices import SUPERVISED
from difflogic.config.policy import PolicyConfig
from difflogic.devices.device import Device
from difflogic.policies.actors import Sightings
from difflogic.policies.classifier import Classifier
from difflogic.policies.environments import Spaces
from difflogic.policies.ppo import PPO
from difflogic.policies.sac import SAC

Agent = PPO | SAC | Classifier
_BY_ALGORITHM: dict[str, type[Agent]] = {"ppo": PPO, "sac": SAC, SUPERVISED: Classifier}


def make_agent(
    config: PolicyConfig, spaces: Spaces, seen: Sightings, device: Device, wiring: int | None = None
) -> Agent:
    """`wiring`: the seed of its wires, where that is another's.

    Raises ConfigError where it does not fit the spaces, LimitError, DeviceError.
    """
    return _BY_ALGORITHM[config.algorithm](config, spaces, seen, device, wiring)
