"""Checkpoints of agents: everything that training needs to go on bit for bit, in one safetensors file with checksums.

Arrays of each member, behind `0.`, `1.` and so on: `seen.mean`, `seen.spread`; `agent.*`, what learning changes;
`environments.*`, where its copies are; `recent` float64 `[n, 2]`, returns and lengths of the last episodes. Beside
them `counters` int64, `elapsed_s` float64. Metadata: `format`, `difflogic`, `config` (TOML), and the checksums.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from difflogic.config.policy import FORMAT, PolicyConfig
from difflogic.errors import CheckpointError, UsageError
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


def _advice(file: Path) -> str:
    previous = file.with_name(files.PREVIOUS)
    if file != previous and previous.exists():
        return f"Continue from the one before it with --resume {quoted(previous)}."
    return "Restore the file from a copy, or start a new run."
