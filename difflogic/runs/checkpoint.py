"""Checkpoints: all that training needs to go on, bit for bit on the same device and driver, in one safetensors file.

Arrays of an automaton: `logits`, `mu`, `nu` float32 `[G, 16]`; `wires.perceive.L` int32 `[K, 2, out]`; `wires.update.L`
int32 `[2, out]`; `data_key`, `train_key` uint32 `[2]`; `step`, `skipped`, `best` int64 `[]` (`best` is the lowest
scheduled hard loss, -1 before the first); where there is a sample pool, `pool` uint8 `[pool, ceil(H*W*C / 8)]`, eight
values a byte, the first in the highest bit; once the circuit is searched, `costs` uint32 `[J, loss_channels, P*H*W]`
(`difflogic.engine.search`).

Arrays of an agent: `seen.mean`, `seen.spread`; `wiring` int64, the seed of its wires; `agent.*`, what learning changes;
`environments.*`, where its copies are; `recent` float64 `[n, 2]`, returns and lengths of the last episodes.

Of both `epoch` int64 `[]`, of an agent environment steps, and `elapsed_s` float64 `[]`. A population's file has these
arrays of each of its models, named `0.logits`, `1.logits` and so on, and `seeds` uint32 `[M]`, `best` int64 `[]`.
Metadata: `format` (FORMAT), `difflogic` (the version that wrote it), `config` (TOML, a population's with the first
seed), and the checksums of `difflogic.runs.checksummed`.
"""

from __future__ import annotations

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
"""In a run folder, of the same format: the model of the fewest wrong values so far, the latest of equals, whose `best`
is that number. `NAME` is what training goes on from."""


class _DamagedError(CheckpointError):
    """Unusable here, but another copy of the file may be intact."""


@dataclass(frozen=True, eq=False)
class ModelState:
    """One automaton of a run at the end of an epoch. `circuit` holds the wiring and the current logits."""

    config: Config
    circuit: Circuit
    state: TrainState
    best: int | None = None
    """Lowest hard loss of the scheduled evaluations so far."""
    elapsed_s: float = 0.0
    """Seconds of training so far, over all processes."""

    __repr__ = brief

    @property
    def epoch(self) -> int:
        return self.state.epoch

    def to_arrays(self) -> checksummed.Arrays:
        """All that a file holds of it but `epoch` and `elapsed_s`."""
        state, optimizer = self.state, self.state.optimizer
        arrays: checksummed.Arrays = {"logits": state.logits, "mu": optimizer.mu, "nu": optimizer.nu}
        for network, layers in self.circuit.wires.items():
            arrays |= {f"wires.{network}.{index}": wires.astype(np.int32) for index, wires in enumerate(layers)}
        arrays |= {"data_key": state.data_key, "train_key": state.train_key}
        # safetensors knows neither None nor plain numbers: counters are arrays of no axis, and -1 is "not yet".
        counters = {"step": optimizer.step, "skipped": state.skipped, "best": -1 if self.best is None else self.best}
        arrays |= {name: np.array(value, dtype=np.int64) for name, value in counters.items()}
        if state.pool is not None:
            # A pool of 16 grids of 20x20 cells with 128 channels is 102 kB so, and 819 kB as bytes.
            arrays["pool"] = np.packbits(state.pool.reshape(len(state.pool), -1), axis=1)
        if state.costs is not None:
            arrays["costs"] = state.costs
        return arrays


@dataclass(frozen=True, eq=False)
class AgentState:
    """One agent of a run after an iteration."""

    config: PolicyConfig
    arrays: checksummed.Arrays
    """What `policies.member.Member.state` gives."""
    epoch: int = 0
    """Environment steps, over all copies."""
    elapsed_s: float = 0.0

    __repr__ = brief

    def to_arrays(self) -> checksummed.Arrays:
        return dict(self.arrays)


State = TypeVar("State", ModelState, AgentState)


@dataclass(frozen=True, eq=False)
class Checkpoint(Generic[State]):
    """A checkpoint has every model of a run, at the same epoch. A population is one file, and so never torn."""

    members: tuple[State, ...]
    """One, or a population's: their configurations differ in nothing but the seed."""
    best: int = 0
    """Index of the member that stands best."""

    __repr__ = brief

    @property
    def epoch(self) -> int:
        return self.members[0].epoch

    @property
    def progress(self) -> str:
        """How far the run is, in words."""
        return f"{self.config.unit if isinstance(self.config, PolicyConfig) else 'epoch'} {self.epoch}"

    @property
    def seeds(self) -> list[int]:
        return [member.config.seed for member in self.members]

    @property
    def config(self) -> Config | PolicyConfig:
        """The run's configuration, a population's with the first seed."""
        return self.members[0].config

    def encode(self) -> bytes:
        """The bytes of a checkpoint file, which `decode` reads."""
        # One run has arrays as they are, so that its file can be read without knowing of populations.
        columns = [_with_progress(member) for member in self.members]
        arrays = columns[0]
        if len(columns) > 1:
            arrays = {
                f"{index}.{name}": array for index, column in enumerate(columns) for name, array in column.items()
            }
            arrays["seeds"] = np.array(self.seeds, dtype=np.uint32)
            arrays["best"] = np.array(self.best, dtype=np.int64)
        return checksummed.encode(arrays, header(self.config))


def _with_progress(member: ModelState | AgentState) -> checksummed.Arrays:
    done = {"epoch": np.array(member.epoch, np.int64), "elapsed_s": np.array(member.elapsed_s, np.float64)}
    return member.to_arrays() | done


def header(config: Document) -> dict[str, str]:
    """The metadata of a checkpoint file."""
    return {"format": str(FORMAT), "difflogic": __version__, "config": config.to_toml()}


def save(folder: Path, checkpoint: Checkpoint[Any]) -> None:
    """Write `folder/NAME`; the one that was there stays as PREVIOUS. Raises OSError, the old one intact.

    Between the two renames only PREVIOUS exists, whole: `locate` then answers with that one.
    """
    # First the new file, whole and on the disk, then two renames: at no moment is there neither the old nor the new.
    path = folder / NAME
    with written_beside(path, checkpoint.encode()) as temporary:
        if path.exists():
            path.replace(folder / PREVIOUS)
        temporary.replace(path)
    sync_folder(folder)


def locate(path: Path) -> Path:
    """The checkpoint file that `path`, a run folder or a file, stands for. Raises NotFoundError."""
    if path.is_file():
        return path
    if not path.is_dir():
        raise NotFoundError(f"There is no run folder or checkpoint at {path}.")
    # Where a process was killed between the two renames of `save`, only the previous one is there.
    for name in (NAME, PREVIOUS):
        if (path / name).exists():
            return path / name
    raise NotFoundError(f"The folder {path} holds no {NAME}: expected the folder of an earlier run.")


def is_in(folder: Path) -> bool:
    """Return whether a folder holds a run that was saved."""
    return (folder / NAME).exists() or (folder / PREVIOUS).exists()


def load(path: Path) -> ModelState:
    """The last model of a run folder, or that of a checkpoint file, of a population the best. Raises as `read` does.

    The best one of a run: `difflogic.runs.chosen`.
    """
    saved = read(path)
    return saved.members[saved.best]


def read(path: Path) -> Checkpoint[ModelState]:
    """Read a run folder's checkpoint of automata, or such a checkpoint file.

    Raises NotFoundError where there is none, CheckpointError where it is truncated, altered, of agents or of another
    format; the message names the previous checkpoint where that one is intact.
    """
    return _of_kind(path, ModelState, "automata")


def read_agents(path: Path) -> Checkpoint[AgentState]:
    """As `read`, of a run of agents."""
    return _of_kind(path, AgentState, "agents")


def fewest_wrong(folder: Path) -> int | None:
    """Return the wrong values of the best circuit of a run, or None before its first evaluation.

    This decides if a run is solved: rows of metrics have no checksum. Raises CheckpointError.
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
    """The configuration of a run, whatever it trains. Raises as `read` does."""
    return _read(path)[1].config


def _of_kind(path: Path, kind: type[State], called: str) -> Checkpoint[State]:
    file, found = _read(path)
    if not isinstance(found.members[0], kind):
        raise CheckpointError(f"{file} is not of a run of {called}: `difflogic show` says what it is.")
    return found


def _read(path: Path) -> tuple[Path, Checkpoint[Any]]:
    file = locate(Path(path))
    try:
        return file, decode(_bytes_of(file), file)
    except _DamagedError as error:
        raise CheckpointError(f"{error} {_advice(file)}") from error


def decode(data: bytes, file: Path) -> Checkpoint[Any]:
    """The inverse of `Checkpoint.encode`; `file` is named in errors. Raises CheckpointError."""
    # The format comes before the checksums: a file of another version is intact, and should not be called corrupt.
    written, writer = checksummed.peek(data, "format"), checksummed.peek(data, "difflogic")
    if writer is None and checksummed.is_whole(data):
        raise CheckpointError(
            f"{file} is not a difflogic checkpoint, and holds tensors of another program: of layers of logic gates, "
            "save the state dict as npz."
        )
    if written is None:
        raise _DamagedError(f"{file} is not a difflogic checkpoint, or its header is damaged.")
    if written != str(FORMAT):
        raise CheckpointError(
            f"The checkpoint {file} was written by difflogic {writer} in format "
            f"{written}; difflogic {__version__} reads format {FORMAT}: use the version that wrote it."
        )
    try:
        return _from_arrays(checksummed.decode(data), any_config(parsed(checksummed.metadata(data)["config"])))
    except checksummed.ChecksumError as error:
        raise _DamagedError(f"The checkpoint {file} is corrupt: {error}.") from error
    except (LookupError, ValueError, TypeError, ArithmeticError, UsageError) as error:
        raise CheckpointError(f"The checkpoint {file} holds no usable run: {error}") from error


def _from_arrays(arrays: checksummed.Arrays, config: Config | PolicyConfig) -> Checkpoint[Any]:
    member: Callable[..., ModelState | AgentState] = _agent
    if isinstance(config, Config):
        # How many layers there are, and of which shape, is said by the configuration, not by names found in the file.
        member = partial(_model, shapes=Circuit.initial(config.model, config.seed))
    if "seeds" not in arrays:
        return Checkpoint((member(arrays, config),))
    seeds, best = arrays.pop("seeds").tolist(), int(arrays.pop("best"))
    members = tuple(
        member(checksummed.part_of(arrays, f"{index}."), config.with_(seed=seed)) for index, seed in enumerate(seeds)
    )
    # `range` refuses a number that is not there, with an IndexError, which is told as a file that holds no usable run.
    return Checkpoint(members, range(len(members))[best])


def _agent(arrays: checksummed.Arrays, config: PolicyConfig) -> AgentState:
    epoch, elapsed_s = int(arrays.pop("epoch")), float(arrays.pop("elapsed_s"))
    return AgentState(config, arrays, epoch, elapsed_s)


def _model(arrays: checksummed.Arrays, config: Config, shapes: Circuit) -> ModelState:
    """One model; `shapes` is any circuit of its shape."""
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
    """`[pool, H, W, C]`. Raises ValueError where it is not of the configuration's size."""
    grid = (config.task.height, config.task.width, config.model.channels)
    values = np.unpackbits(packed, axis=1, count=math.prod(grid))
    return values.reshape(config.pool.size, *grid)


def _bytes_of(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise _DamagedError(f"Cannot read the checkpoint {file}: {error.strerror}.") from error


def _advice(file: Path) -> str:
    """Return what to do about an unusable checkpoint."""
    # The best circuit can be done without, and the last checkpoint has one before it; all else needs a copy.
    if file.name == BEST:
        return f"Remove it, and the last circuit, {NAME}, is taken instead."
    previous = file.with_name(PREVIOUS)
    if file.name == NAME and previous.exists():
        try:
            done = decode(_bytes_of(previous), previous).progress
            return f"The one before it is intact: continue from {done} with --resume {quoted(previous)}."
        except CheckpointError:
            return f"The one before it, {previous.name}, is not usable either: start a new run."
    return "Restore the file from a copy, or start a new run."
