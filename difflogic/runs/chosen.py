"""Choice of the circuit of a run that commands take: the best one, and of several attempts that of the best attempt.

`told` says which one it is.
"""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from difflogic.config import dataset
from difflogic.config.dataset import Dataset
from difflogic.config.schema import Config
from difflogic.errors import RunFolderError, UsageError
from difflogic.model.circuit import Circuit
from difflogic.runs import attempts, checkpoint, jsonl, manifest
from difflogic.runs.checkpoint import ModelState
from difflogic.runs.journal import JSONL
from difflogic.system.words import counted, path_text

Source = str | os.PathLike[str]
"""Run folder or file, by its path, or a `Run`, which is a path in Python's sense."""


@dataclass(frozen=True, eq=False)
class Chosen:
    """One model of a run."""

    path: Path
    """Run folder, of attempts that of one of them; or the checkpoint file that was named."""
    model: ModelState
    last: int
    """Epoch of the run's last state."""
    seeds: Sequence[int]
    told: str
    kept: bool
    """Whether it is the best one of the run; `model.best` are then its wrong values."""
    named: Path
    """Path that was asked for: of several attempts the folder of them all, which holds results."""

    @property
    def best(self) -> ModelState | None:
        """Model, if it is the best of the run."""
        return self.model if self.kept else None

    @property
    def circuit(self) -> Circuit:
        return self.model.circuit

    @property
    def config(self) -> Config:
        """Configuration with the model's own seed."""
        return self.model.config

    @property
    def epoch(self) -> int:
        """Epoch of the model, at most `last`."""
        return self.model.state.epoch

    def data(self) -> Dataset | None:
        """Return the samples of the run, or None if its task has none. Raises DataError."""
        return dataset.of_run(self.config, self.path if self.path.is_dir() else self.path.parent)

    @property
    def index(self) -> int:
        """Index of the model in the run."""
        return self.seeds.index(self.config.seed)


def path_of(source: Source) -> Path:
    """Return the path of a text, path or run. Raises UsageError for anything else."""
    try:
        return Path(path_text(source) if isinstance(source, str) else source)
    except TypeError:
        kind = type(source).__name__
        raise UsageError(f"Expected a run, or the path of its folder or file, got an object of type {kind}.") from None


def run_folder(path: Path) -> Path:
    """Return the run folder or checkpoint file of `path`: of several attempts the solved one, else the best one.

    The best has the fewest wrong values, of agents the highest score. Raises RunFolderError if there is no attempt.
    """
    if not attempts.is_in(path):
        return path
    folders = [folder for folder in path.glob("attempt-*") if folder.name[8:].isdigit() and checkpoint.is_in(folder)]
    if not folders:
        raise RunFolderError(f"The run in {path} has no saved attempt yet: continue it first.")
    folders.sort(key=lambda folder: int(folder.name[8:]))
    solved = [path / each.folder for each in attempts.read(path).attempts if each.status == "solved"]
    return solved[0] if solved and solved[0] in folders else min(folders, key=_shortfall)


def load(path: Path, member: int | None = None) -> Chosen:
    """Return the best model of a run, or of a population the last state of the one counted `member` from 1.

    A checkpoint file is taken as it is. Raises CheckpointError if there is no usable checkpoint, UsageError for an
    unknown member, RunFolderError.
    """
    folder = run_folder(Path(path))
    saved = checkpoint.read(folder)
    best = folder / checkpoint.BEST
    # Gates may have become worse since the best state. A named member or file is taken as it is.
    kept = member is None and folder.is_dir() and best.exists()
    if kept:
        model, what = checkpoint.load(best), "the best circuit"
    else:
        index = saved.best if member is None else _index(folder, member, saved.seeds)
        model, what = saved.members[index], "the last circuit" if folder.is_dir() else "the circuit"
    if len(saved.seeds) > 1:
        what += f" of seed {model.config.seed}"
    told = f"{folder}: {what}, of epoch {model.state.epoch}" if model.epoch else f"{folder}: the circuit"
    if kept:
        result = f"with {counted(model.best, 'wrong cell')}" if model.best else "right"
        told += f", {result} on its evaluation grids" if model.epoch else ", built without training"
    if model.state.epoch < saved.epoch:
        told += f"; the last is of epoch {saved.epoch}"
    return Chosen(folder, model, saved.epoch, saved.seeds, told + ".", kept, Path(path))


def _index(path: Path, member: int, seeds: Sequence[int]) -> int:
    if not 1 <= member <= len(seeds):
        range_ = f"1 to {len(seeds)}, of seeds {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else "only member 1"
        raise UsageError(f"There is no member {member} in {path}: it has {range_}.")
    return member - 1


def _shortfall(folder: Path) -> float:
    """Return a number that compares attempts: wrong values, of agents minus the last score, else infinity."""
    if manifest.is_policy(manifest.read(folder)):
        scores = [row["score"] for row in jsonl.objects(folder / JSONL) if row["score"] is not None]
        return -scores[-1] if scores else math.inf
    wrong = checkpoint.fewest_wrong(folder)
    return math.inf if wrong is None else wrong
