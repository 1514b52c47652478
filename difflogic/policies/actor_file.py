"""Read and write `actor.safetensors`, an actor without its training state, protected by checksums.

Arrays are `seen.mean`, `seen.spread`, `actor.*` (parameters), `follower.*` (moving means); metadata as in a checkpoint.

    agent = actor_file.load(Path("runs/first"), Device("cpu"))
    evaluate_policy(agent.decide, "CartPole-v1", episodes=100, seed=0).mean
"""

import sys
from pathlib import Path

from difflogic.config.policy import ClassifierConfig, PolicyConfig
from difflogic.devices.device import Device
from difflogic.errors import CheckpointError, ConfigError, UsageError
from difflogic.policies import classifier
from difflogic.policies.actors import Sightings
from difflogic.policies.environments import spaces_of
from difflogic.policies.member import Agent, make_agent
from difflogic.runs import checkpoint as files
from difflogic.runs import checksummed
from difflogic.runs.checksummed import part_of

NAME = "actor.safetensors"
"""Name of the file with the best agent in a run folder."""
ACTS = ("actor.", "follower.")


def encode(agent: Agent) -> bytes:
    """Return the contents of the file `actor.safetensors` for an agent."""
    arrays = {name: array for name, array in agent.state().items() if name.startswith(ACTS)}
    scales = {"seen.mean": agent.seen.mean, "seen.spread": agent.seen.spread}
    return checksummed.encode(arrays | scales, files.header(agent.config))


def load(path: Path, device: Device) -> Agent:
    """Load the agent of `path`, a run folder or actor file, with its saved policy and a new training state.

    If its environment is named `module:Name`, import that module first. Raises CheckpointError, ConfigError or
    DeviceError.
    """
    file = path / NAME if path.is_dir() else path
    try:
        data = file.read_bytes()
        arrays, config = checksummed.decode(data), PolicyConfig.from_toml(checksummed.metadata(data)["config"])
        if isinstance(config, ClassifierConfig):
            spaces = classifier.spaces(config.table)
        else:
            module = config.subject.rpartition(":")[0]
            if module and module not in sys.modules:
                raise ConfigError(
                    f"its environment is defined in the module {module}: import it first if you trust it."
                )
            spaces = spaces_of(config.subject, config.gates.memory)
            # The agent has no transitions yet, so the smallest replay buffer is enough.
            config = config.with_(sac={"buffer_size": 1})
        scales = Sightings(**part_of(arrays, "seen."))
        agent = make_agent(config, spaces, scales, device, config.seed)
        agent.restore(agent.state() | {name: array for name, array in arrays.items() if name.startswith(ACTS)})
    except OSError as error:
        raise CheckpointError(f"Cannot read the actor {file}: {error.strerror}.") from error
    except checksummed.ChecksumError as error:
        raise CheckpointError(f"The actor {file} is corrupt: {error}. Copy it again.") from error
    except (IndexError, KeyError, TypeError, ValueError, UsageError) as error:
        raise CheckpointError(f"The file {file} contains no usable actor: {error}") from error
    return agent
