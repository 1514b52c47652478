"""Checkpoints of agents: everything that training needs to go on bit for bit, in one safetensors file with checksums.

Arrays of each member, behind `0.`, `1.` and so on: `seen.mean`, `seen.spread`; `wiring` int64, the seed of its wires;
`agent.*`, what learning changes; `environments.*`, where its copies are; `recent` float64 `[n, 2]`, returns and lengths
of the last episodes. Beside them `counters` int64, `elapsed_s` float64. Metadata: `format`, `difflogic`, `config`
(TOML), and the checksums.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from difflogic.config.policy import FORMAT, PolicyConfig, unlike
from difflogic.errors import CheckpointError, ConfigError, UsageError
from difflogic.policies import results
from difflogic.policies.environments import Arrays, part_of
from difflogic.runs import checkpoint as files
from difflogic.runs import checksummed
from difflogic.system.files import quoted


@dataclass(frozen=True, eq=False)
class PolicyCheckpoint:
    """All agents of a run after one iteration."""

    config: PolicyConfig
    """With the first seed."""
    iteration: int
    members: tuple[Arrays, ...]
    """What `Member.state` gives, of each."""
    elapsed_s: float = 0.0

    @property
    def seeds(self) -> list[int]:
        return [self.config.seed + index for index in range(len(self.members))]

    @property
    def progress(self) -> str:
        return f"iteration {self.iteration}"

    def encode(self) -> bytes:
        """The bytes of a checkpoint file, which `read` reads."""
        arrays: checksummed.Arrays = {
            f"{index}.{name}": array for index, member in enumerate(self.members) for name, array in member.items()
        }
        arrays["counters"] = np.array([self.iteration, len(self.members)], dtype=np.int64)
        arrays["elapsed_s"] = np.array(self.elapsed_s, dtype=np.float64)
        return checksummed.encode(arrays, files.header(FORMAT, self.config))


def read(path: Path) -> PolicyCheckpoint:
    """The checkpoint of a run folder, or a checkpoint file. Raises CheckpointError."""
    file = files.locate(path)
    try:
        data = file.read_bytes()
        arrays, config = checksummed.decode(data), PolicyConfig.from_toml(checksummed.metadata(data)["config"])
        iteration, count = (int(each) for each in arrays["counters"])
        members = tuple(part_of(arrays, f"{index}.") for index in range(count))
        return PolicyCheckpoint(config, iteration, members, float(arrays["elapsed_s"]))
    except OSError as error:
        raise CheckpointError(f"Cannot read the checkpoint {file}: {error.strerror}.") from error
    except checksummed.ChecksumError as error:
        raise CheckpointError(f"The checkpoint {file} is corrupt: {error}. {_advice(file)}") from error
    except (KeyError, ValueError, UsageError) as error:
        raise CheckpointError(f"The checkpoint {file} holds no agent that can be used: {error}") from error


def lent(path: Path, config: PolicyConfig) -> Arrays:
    """The state of the best agent of a run, for one of this configuration to begin with.

    Raises CheckpointError, ConfigError where the two have other shapes.
    """
    saved = read(path)
    if (words := unlike(config.to_dict(), saved.config.to_dict())) is not None:
        raise ConfigError(f"--init-from needs a run of agents of the same shape: {words}.")
    seed = results.best_seed(path) if path.is_dir() else None
    index = saved.seeds.index(seed) if seed in saved.seeds else 0
    return {"wiring": np.array(saved.seeds[index], dtype=np.int64), **saved.members[index]}


def _advice(file: Path) -> str:
    previous = file.with_name(files.PREVIOUS)
    if file != previous and previous.exists():
        return f"Continue from the one before it with --resume {quoted(previous)}."
    return "Restore the file from a copy, or start a new run."
