"""Reader and writer of checkpoints, from which training continues bit-identically on the same device and driver.

The format is safetensors. Arrays of an automaton: `logits`, `mu`, `nu` float32 `[G, 16]`; `wires.perceive.L` int32
`[K, 2, out]`; `wires.update.L` int32 `[2, out]`; `data_key`, `train_key` uint32 `[2]`; `step`, `skipped`, `best` int64
`[]` (`best` is the lowest hard loss of a scheduled evaluation, -1 before the first); for a sample pool `pool` uint8
`[pool, ceil(H*W*C / 8)]`, eight values per byte, the first in the highest bit; during a search, `costs`
uint32 `[J, loss_channels, P*H*W]` (`difflogic.engine.search`).

Arrays of an agent: `seen.mean`, `seen.spread` of observations; `wiring` int64, seed of the wires; `agent.*`, learned
state; `environments.*`, state of the environments; `recent` float64 `[n, 2]`, returns and lengths of the last episodes.

Both have `epoch` int64 `[]`, environment steps for agents, and `elapsed_s` float64 `[]`. A population's file has these
arrays of each model, named `0.logits`, `1.logits` and so on, and `seeds` uint32 `[M]`, `best` int64 `[]`. Metadata:
`format` (FORMAT), `difflogic` (the version that wrote it), `config` (TOML; for a population, with the first seed), and
the checksums of `difflogic.runs.checksummed`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from difflogic.config.document import Document, parsed
from difflogic.config.policy import PolicyConfig, any_config
from difflogic.config.schema import Config
from difflogic.engine.job import OptimizerState, TrainState
from difflogic.errors import CheckpointError, NotFoundError, UsageError
from difflogic.model.circuit import Circuit
from difflogic.runs import checksummed
from difflogic.system.brief import brief
from difflogic.system.files import quoted, sync_folder, written_beside
from difflogic.version import __version__

FORMAT = 1
NAME = "checkpoint.safetensors"
PREVIOUS = "checkpoint.previous.safetensors"
BEST = "best.safetensors"
"""Name of the file with the best model so far (fewest mismatches, the latest in a tie)."""


class _DamagedError(CheckpointError):
    """Error for a damaged file; its handler checks the previous checkpoint and adds advice to the message."""


@dataclass(frozen=True, eq=False)
class ModelState:
    """State of one automaton after an epoch; `circuit` contains its wiring and current logits."""

    config: Config
    circuit: Circuit
    state: TrainState
    best: int | None = None
    """Lowest hard loss in scheduled evaluations so far, or None before the first evaluation."""
    elapsed_s: float = 0.0
    """Total training time so far in seconds, including earlier processes of a resumed run."""

    __repr__ = brief

    @property
    def epoch(self) -> int:
        return self.state.epoch

    def to_arrays(self) -> checksummed.Arrays:
        """Return this state's arrays for a checkpoint by name, without `epoch` and `elapsed_s`."""
        state, optimizer = self.state, self.state.optimizer
        arrays: checksummed.Arrays = {"logits": state.logits, "mu": optimizer.mu, "nu": optimizer.nu}
        for network, layers in self.circuit.wires.items():
            arrays |= {f"wires.{network}.{index}": wires.astype(np.int32) for index, wires in enumerate(layers)}
        arrays |= {"data_key": state.data_key, "train_key": state.train_key}
        # safetensors has neither None nor plain numbers, so counters are arrays without axes, and -1 means None.
        counters = {"step": optimizer.step, "skipped": state.skipped, "best": -1 if self.best is None else self.best}
        arrays |= {name: np.array(value, dtype=np.int64) for name, value in counters.items()}
        if state.pool is not None:
            # With packed bits, 16 grids of 20x20 cells with 128 channels take 102 kB instead of 819 kB.
            arrays["pool"] = np.packbits(state.pool.reshape(len(state.pool), -1), axis=1)
        if state.costs is not None:
            arrays["costs"] = state.costs
        return arrays


@dataclass(frozen=True, eq=False)
class AgentState:
    """State of one agent after a training iteration."""

    config: PolicyConfig
    arrays: checksummed.Arrays
    """Arrays by name, as returned by `policies.member.Member.state`."""
    epoch: int = 0
    """Number of environment steps so far, over all copies of the environment."""
    elapsed_s: float = 0.0

    __repr__ = brief

    def to_arrays(self) -> checksummed.Arrays:
        return dict(self.arrays)


State = TypeVar("State", ModelState, AgentState)


@dataclass(frozen=True, eq=False)
class Checkpoint(Generic[State]):
    """States of all models of a run after the same epoch, in one file so that they are consistent."""

    members: tuple[State, ...]
    """States of the models, with configurations that differ only in the seed."""
    best: int = 0

    __repr__ = brief

    @property
    def epoch(self) -> int:
        return self.members[0].epoch

    @property
    def progress(self) -> str:
        """Progress of the run as text, such as `epoch 50`."""
        return f"{self.config.unit} {self.epoch}"

    @property
    def seeds(self) -> list[int]:
        return [member.config.seed for member in self.members]

    @property
    def config(self) -> Config | PolicyConfig:
        """Configuration of the run; for a population, the configuration with the first seed."""
        return self.members[0].config

    def encode(self) -> bytes:
        """Return the contents of a checkpoint file."""
        # Array names begin with the number of their model only in a population.
        columns = [
            member.to_arrays()
            | {"epoch": np.array(member.epoch, np.int64), "elapsed_s": np.array(member.elapsed_s, np.float64)}
            for member in self.members
        ]
        arrays = columns[0]
        if len(columns) > 1:
            arrays = {
                f"{index}.{name}": array for index, column in enumerate(columns) for name, array in column.items()
            }
            arrays["seeds"] = np.array(self.seeds, dtype=np.uint32)
            arrays["best"] = np.array(self.best, dtype=np.int64)
        return checksummed.encode(arrays, header(self.config))


def header(config: Document) -> dict[str, str]:
    """Return a checkpoint file's metadata for a configuration, without checksums."""
    return {"format": str(FORMAT), "difflogic": __version__, "config": config.to_toml()}


def save(folder: Path, checkpoint: Checkpoint[Any]) -> None:
    """Write `folder/NAME` and rename an existing file to PREVIOUS. On OSError, the existing file remains intact."""
    # The new file is complete on disk before the two renames. Between them only PREVIOUS exists: see `locate`.
    path = folder / NAME
    with written_beside(path, checkpoint.encode()) as temporary:
        if path.exists():
            path.replace(folder / PREVIOUS)
        temporary.replace(path)
    sync_folder(folder)


def locate(path: Path) -> Path:
    """Return the checkpoint file of the run folder `path`, or `path` if it is a file. Raises NotFoundError."""
    if path.is_file():
        return path
    if not path.is_dir():
        raise NotFoundError(f"No run folder or checkpoint file at {path}.")
    # If a process is killed between the two renames of `save`, only the previous checkpoint exists.
    for name in (NAME, PREVIOUS):
        if (path / name).exists():
            return path / name
    raise NotFoundError(f"The folder {path} does not contain {NAME}: expected a run folder.")


def is_in(folder: Path) -> bool:
    """Return whether a folder contains a current or previous checkpoint."""
    return (folder / NAME).exists() or (folder / PREVIOUS).exists()


def load(path: Path) -> ModelState:
    """Return the state of the model in a run folder or checkpoint file; for a population, of the best model."""
    saved = read(path)
    return saved.members[saved.best]


def read(path: Path) -> Checkpoint[ModelState]:
    """Read the checkpoint of automata in a run folder or file.

    Raises NotFoundError if there is no checkpoint, or CheckpointError if it is damaged, of agents or of another format.
    If the previous checkpoint is intact, the message names its file.
    """
    return _of_kind(path, ModelState, "automata")


def read_agents(path: Path) -> Checkpoint[AgentState]:
    """Read the checkpoint of agents in a run folder or file. Raises NotFoundError or CheckpointError, like `read`."""
    return _of_kind(path, AgentState, "agents")


def fewest_wrong(folder: Path) -> int | None:
    """Return the number of mismatches of a run's best circuit, or None before its first evaluation.

    The checkpoint decides whether a run is solved, since metrics have no checksum. Raises CheckpointError.
    """
    file = folder / BEST
    if not file.exists():
        return None
    try:
        wrong = int(checksummed.decode(_bytes_of(file))["best"])
    except (checksummed.ChecksumError, KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"The checkpoint {file} is corrupt: {error}. {_advice(file)}") from error
    return None if wrong < 0 else wrong


def config_of(path: Path) -> Config | PolicyConfig:
    """Return the configuration of a run of automata or agents. Raises NotFoundError or CheckpointError, like `read`."""
    return _read(path)[1].config


def _of_kind(path: Path, kind: type[State], name: str) -> Checkpoint[State]:
    file, checkpoint = _read(path)
    if not isinstance(checkpoint.members[0], kind):
        raise CheckpointError(f"Expected a run of {name}, got {file}, which is of another kind: choose another run.")
    return checkpoint


def _read(path: Path) -> tuple[Path, Checkpoint[Any]]:
    file = locate(Path(path))
    try:
        return file, decode(_bytes_of(file), file)
    except _DamagedError as error:
        raise CheckpointError(f"{error} {_advice(file)}") from error


def decode(data: bytes, file: Path) -> Checkpoint[Any]:
    """Decode `data`, the contents of the checkpoint file `file`. Raises CheckpointError, with `file` in its message."""
    # The format is checked before the checksums, since a file of another version is not damaged.
    if data.lstrip()[:1] == b"{":  # most likely a circuit.json
        raise CheckpointError(f"Expected a run folder or checkpoint, but {file} is JSON: pass the run folder.")
    written, writer = checksummed.peek(data, "format"), checksummed.peek(data, "difflogic")
    if writer is None and checksummed.is_whole(data):
        raise CheckpointError(
            f"{file} is not a difflogic checkpoint, but contains tensors of another program: to import layers of logic "
            "gates, save their state dict as .npz."
        )
    if written is None:
        raise _DamagedError(f"{file} is not a difflogic checkpoint, or its header is damaged.")
    if written != str(FORMAT):
        raise CheckpointError(
            f"The checkpoint {file} was written by difflogic {writer} in format {written}, but difflogic {__version__} "
            f"expects format {FORMAT}: use the version that wrote it."
        )
    try:
        return _from_arrays(checksummed.decode(data), any_config(parsed(checksummed.metadata(data)["config"])))
    except checksummed.ChecksumError as error:
        raise _DamagedError(f"The checkpoint {file} is corrupt: {error}.") from error
    except (LookupError, ValueError, TypeError, ArithmeticError, UsageError) as error:
        raise CheckpointError(f"The checkpoint {file} does not contain a usable run: {error}") from error


def _from_arrays(arrays: checksummed.Arrays, config: Config | PolicyConfig) -> Checkpoint[Any]:
    member: Callable[..., ModelState | AgentState] = _agent
    if isinstance(config, Config):
        # The number of layers follows from the configuration, not from the names in the file.
        member = partial(_model, shapes=Circuit.initial(config.model, config.seed))
    if "seeds" not in arrays:
        return Checkpoint((member(arrays, config),))
    seeds, best = arrays.pop("seeds").tolist(), int(arrays.pop("best"))
    members = tuple(
        member(checksummed.part_of(arrays, f"{index}."), config.with_(seed=seed)) for index, seed in enumerate(seeds)
    )
    # Indexing a range checks `best`: it raises an error for an index out of range, and converts a negative index.
    return Checkpoint(members, range(len(members))[best])


def _agent(arrays: checksummed.Arrays, config: PolicyConfig) -> AgentState:
    return AgentState(config, arrays, int(arrays.pop("epoch")), float(arrays.pop("elapsed_s")))


def _model(arrays: checksummed.Arrays, config: Config, shapes: Circuit) -> ModelState:
    """Convert the arrays of one model to its state; `shapes` is a circuit with the expected array shapes."""
    wires = {
        network: [arrays[f"wires.{network}.{index}"] for index in range(len(layers))]
        for network, layers in shapes.wires.items()
    }
    logits = shapes.unflatten(arrays["logits"])
    model = config.model
    circuit = Circuit.from_arrays(logits, wires, model.channels, model.periodic, model.neighbourhood)
    best = int(arrays["best"])
    return ModelState(
        config=config,
        circuit=circuit,
        state=TrainState(
            logits=arrays["logits"],
            optimizer=OptimizerState(arrays["mu"], arrays["nu"], int(arrays["step"])),
            data_key=arrays["data_key"],
            train_key=arrays["train_key"],
            epoch=int(arrays["epoch"]),
            skipped=int(arrays["skipped"]),
            pool=_pool(arrays["pool"], config) if config.pool.size else None,
            costs=arrays.get("costs"),
        ),
        best=None if best < 0 else best,
        elapsed_s=float(arrays["elapsed_s"]),
    )


def _pool(packed: npt.NDArray[np.uint8], config: Config) -> npt.NDArray[np.uint8]:
    """Unpack a sample pool, eight values per byte, to grids `[pool, H, W, C]`. Raises ValueError for a wrong size."""
    grid = (config.task.height, config.task.width, config.model.channels)
    values = np.unpackbits(packed, axis=1, count=math.prod(grid))
    return values.reshape(config.pool.size, *grid)


def _bytes_of(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise _DamagedError(f"Cannot read the checkpoint {file}: {error.strerror}.") from error


def _advice(file: Path) -> str:
    if file.name == BEST:
        return f"Remove it to use the last circuit, {NAME}, instead."
    previous = file.with_name(PREVIOUS)
    if file.name == NAME and previous.exists():
        try:
            done = decode(_bytes_of(previous), previous).progress
            return f"The previous checkpoint is intact: continue from {done} with --resume {quoted(previous)}."
        except CheckpointError:
            return f"The previous checkpoint, {previous.name}, is not usable either: start a new run."
    return "Restore the file from a backup, or start a new run."
