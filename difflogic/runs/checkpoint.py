"""Checkpoints: everything that training needs to go on bit for bit, in one safetensors file with checksums.

Arrays: `logits`, `mu`, `nu` float32 `[G, 16]`; `wires.perceive.L` int32 `[K, 2, out]`; `wires.update.L`
int32 `[2, out]`; `data_key`, `train_key` uint32 `[2]`; `step`, `epoch`, `skipped`, `best` int64 `[]`
(`best` is the lowest scheduled hard loss, -1 before the first); `elapsed_s` float64 `[]`; where there is a sample
pool, `pool` uint8 `[pool, ceil(H*W*C / 8)]`, eight values a byte, the first in the highest bit; once the circuit is
searched, `costs` uint32 `[J, loss_channels, P*H*W]` (`difflogic.engine.search`).
A population's file has these arrays with a leading axis M, and `seeds` uint32 `[M]`, `leader` int64 `[]`.
Metadata: `format` (FORMAT), `difflogic` (the version that wrote it), `config` (TOML, a population's
with the first seed), and the checksums of `difflogic.runs.checksummed`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

import difflogic
from difflogic.config.document import Document
from difflogic.config.schema import Config
from difflogic.engine.job import OptimizerState, TrainState
from difflogic.errors import CheckpointError, NotFoundError, UsageError
from difflogic.model.circuit import Circuit
from difflogic.runs import checksummed
from difflogic.system.brief import brief
from difflogic.system.files import quoted, sync_folder, write_beside

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
    """One model of a run at the end of an epoch. `circuit` holds the wiring and the current logits."""

    config: Config
    circuit: Circuit
    state: TrainState
    best: int | None = None
    """Lowest hard loss of the scheduled evaluations so far."""
    elapsed_s: float = 0.0
    """Seconds of training so far, over all processes."""

    __repr__ = brief


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A checkpoint has every model of a run, at the same epoch. A population is one file, and so never torn."""

    members: tuple[ModelState, ...]
    """One, or a population's: their configurations differ in nothing but the seed."""
    leader: int = 0
    """Index of the member that stands best."""

    __repr__ = brief

    @property
    def epoch(self) -> int:
        return self.members[0].state.epoch

    @property
    def seeds(self) -> list[int]:
        return [member.config.seed for member in self.members]

    @property
    def progress(self) -> str:
        return f"epoch {self.epoch}"

    @property
    def config(self) -> Config:
        return self.members[0].config

    def encode(self) -> bytes:
        """The bytes of a checkpoint file, which `decode` reads."""
        # One run has arrays as they are, so that its file can be read without knowing of populations.
        columns = [_to_arrays(member) for member in self.members]
        arrays = columns[0]
        if len(columns) > 1:
            arrays = {name: np.stack([column[name] for column in columns]) for name in columns[0]}
            arrays["seeds"] = np.array(self.seeds, dtype=np.uint32)
            arrays["leader"] = np.array(self.leader, dtype=np.int64)
        return checksummed.encode(arrays, header(FORMAT, self.config))


class Saved(Protocol):
    """A run folder keeps one of these as its checkpoint: that of automata is `Checkpoint`."""

    @property
    def progress(self) -> str:
        """Return how far the run is, in words: `epoch 50`."""

    @property
    def config(self) -> Document:
        """The run's configuration, a population's with the first seed."""

    @property
    def seeds(self) -> list[int]:
        """The seeds of its models."""

    def encode(self) -> bytes:
        """The bytes of a checkpoint file."""


def header(form: int, config: Document) -> dict[str, str]:
    """The metadata of a checkpoint file."""
    return {"format": str(form), "difflogic": difflogic.__version__, "config": config.to_toml()}


def save(folder: Path, checkpoint: Saved) -> None:
    """Write `folder/NAME`; the one that was there stays as PREVIOUS. Raises OSError, the old one intact.

    Between the two renames only PREVIOUS exists, whole: `locate` then answers with that one.
    """
    # First the new file, whole and on the disk, then two renames: at no moment is there neither the old nor the new.
    path = folder / NAME
    temporary = write_beside(path, checkpoint.encode())
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
    """The last model of a run folder, or that of a checkpoint file, of a population its leader. Raises as `read` does.

    The best one of a run: `difflogic.runs.chosen`.
    """
    saved = read(path)
    return saved.members[saved.leader]


def read(path: Path) -> Checkpoint:
    """Read a run folder's checkpoint, or a checkpoint file.

    Raises NotFoundError where there is none, CheckpointError where it is truncated, altered or of another format; the
    message names the previous checkpoint where that one is intact.
    """
    file = locate(Path(path))
    try:
        return decode(_bytes_of(file), file)
    except _DamagedError as error:
        raise CheckpointError(f"{error} {_advice(file)}") from error


def _to_arrays(member: ModelState) -> checksummed.Arrays:
    state, optimizer = member.state, member.state.optimizer
    arrays: checksummed.Arrays = {"logits": state.logits, "mu": optimizer.mu, "nu": optimizer.nu}
    for network, layers in member.circuit.wires.items():
        arrays |= {f"wires.{network}.{index}": wires.astype(np.int32) for index, wires in enumerate(layers)}
    arrays |= {"data_key": state.data_key, "train_key": state.train_key}
    # safetensors knows neither None nor plain numbers: counters are arrays of no axis, and -1 is "not yet".
    best = -1 if member.best is None else member.best
    counters = {"step": optimizer.step, "epoch": state.epoch, "skipped": state.skipped, "best": best}
    arrays |= {name: np.array(value, dtype=np.int64) for name, value in counters.items()}
    arrays["elapsed_s"] = np.array(member.elapsed_s, dtype=np.float64)
    if state.pool is not None:
        # A pool of 16 grids of 20x20 cells with 128 channels is 102 kB so, and 819 kB as bytes.
        arrays["pool"] = np.packbits(state.pool.reshape(len(state.pool), -1), axis=1)
    if state.costs is not None:
        arrays["costs"] = state.costs
    return arrays


def decode(data: bytes, file: Path) -> Checkpoint:
    """The inverse of `Checkpoint.encode`; `file` is named in errors. Raises CheckpointError."""
    # The format comes before the checksums: a file of another version is intact, and should not be called corrupt.
    written = checksummed.peek(data, "format")
    if written is None:
        raise _DamagedError(f"{file} is not a difflogic checkpoint, or its header is damaged.")
    if written != str(FORMAT):
        raise CheckpointError(
            f"The checkpoint {file} was written by difflogic {checksummed.peek(data, 'difflogic')} in format "
            f"{written}; difflogic {difflogic.__version__} reads format {FORMAT}: use the version that wrote it."
        )
    try:
        return _from_arrays(checksummed.decode(data), Config.from_toml(checksummed.metadata(data)["config"]))
    except checksummed.ChecksumError as error:
        raise _DamagedError(f"The checkpoint {file} is corrupt: {error}.") from error
    except (KeyError, IndexError, ValueError, UsageError) as error:
        raise CheckpointError(f"The checkpoint {file} holds no usable run: {error}") from error


def _from_arrays(arrays: checksummed.Arrays, config: Config) -> Checkpoint:
    # How many layers there are, and of which shape, is said by the configuration, not by names found in the file.
    shapes = Circuit.initial(config.model, config.seed)
    if "seeds" not in arrays:
        return Checkpoint((_member(arrays, config, shapes),))
    seeds, leader = arrays.pop("seeds").tolist(), int(arrays.pop("leader"))
    members = tuple(
        _member({name: array[index] for name, array in arrays.items()}, config.with_(seed=seed), shapes)
        for index, seed in enumerate(seeds)
    )
    # `range` refuses a leader that is not there, with an IndexError, which is told as a file that holds no usable run.
    return Checkpoint(members, range(len(members))[leader])


def _member(arrays: checksummed.Arrays, config: Config, shapes: Circuit) -> ModelState:
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
            epoch = decode(_bytes_of(previous), previous).epoch
            return f"The one before it is intact: continue from epoch {epoch} with --resume {quoted(previous)}."
        except CheckpointError:
            return f"The one before it, {previous.name}, is not usable either: start a new run."
    return "Restore the file from a copy, or start a new run."
