"""A command takes one circuit of a run: the best one, and of several attempts that of the best attempt.

A run folder keeps its last state, which training goes on from, and the best one so far. Every command that takes a
run comes here, and says by `told` what it took.
"""

from __future__ import annotations

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
from difflogic.system.words import counted

Source = str | os.PathLike[str]
"""A run folder or a file, by its path, or a `Run`, which is a path in Python's sense."""


@dataclass(frozen=True, eq=False)
class Chosen:
    """One model of a run."""

    path: Path
    """The run folder, of attempts that of one of them; or the checkpoint file that was named."""
    model: ModelState
    last: int
    """The epoch of the run's last state."""
    seeds: Sequence[int]
    """The seeds of all models of the run."""
    told: str
    """Which it is, in one sentence."""

    kept: bool
    """Whether it is the best one that the run kept; `model.best` are then its wrong values."""
    named: Path
    """What was asked for: of several attempts the folder of them all, in which results are looked for."""

    @property
    def best(self) -> ModelState | None:
        """The model, where it is the best that the run kept."""
        return self.model if self.kept else None

    @property
    def circuit(self) -> Circuit:
        return self.model.circuit

    @property
    def config(self) -> Config:
        """The configuration with the model's own seed."""
        return self.model.config

    @property
    def epoch(self) -> int:
        """The epoch that the model is of, at most `last`."""
        return self.model.state.epoch

    def data(self) -> Dataset | None:
        """The samples of the run; None where its task is in none. Raises DataError."""
        return dataset.of_run(self.config, self.path if self.path.is_dir() else self.path.parent)

    @property
    def index(self) -> int:
        """Return which model of the run it is."""
        return self.seeds.index(self.config.seed)


def path_of(source: Source) -> Path:
    """Return the path that a user gives, as text, path or run. Raises UsageError for anything else."""
    try:
        return Path(source)
    except TypeError:
        kind = type(source).__name__
        raise UsageError(f"Expected a run, or the path of its folder or file, got an object of type {kind}.") from None


def run_folder(path: Path) -> Path:
    """The run folder or checkpoint file that `path` stands for: of several attempts the solved one, else the one of the
    fewest wrong values, of agents of the highest score.

    Raises RunFolderError where there is no attempt yet.
    """
    if not attempts.is_in(path):
        return path
    folders = [folder for folder in path.glob("attempt-*") if folder.name[8:].isdigit() and checkpoint.is_in(folder)]
    if not folders:
        raise RunFolderError(f"The run in {path} has no saved attempt yet: continue it first.")
    # By number, since attempt-10 would come before attempt-2 by name; of equals the first is taken.
    folders.sort(key=lambda folder: int(folder.name[8:]))
    solved = [path / each.folder for each in attempts.read(path).attempts if each.status == "solved"]
    return solved[0] if solved and solved[0] in folders else min(folders, key=_shortfall)


def load(path: Path, member: int | None = None) -> Chosen:
    """The best model of a run, or of a population the last state of the one counted `member` from 1.

    `path` is a run folder, one that holds attempts, or a checkpoint file, which is taken as it is. Raises
    CheckpointError where there is no usable checkpoint, UsageError for a member that is not there, RunFolderError.
    """
    folder = run_folder(Path(path))
    saved = checkpoint.read(folder)
    best = folder / checkpoint.BEST
    # The last state is what training goes on from, not what it is for: gates may have changed for the worse since the
    # best one was kept. Who names a member, or a file, gets just that.
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
    """Return what attempts are compared by: wrong values of the circuit that is taken, of agents minus the last score.

    Infinity where nothing was evaluated.
    """
    if manifest.is_policy(manifest.read(folder)):
        scores = [row["score"] for row in jsonl.objects(folder / JSONL) if row["score"] is not None]
        return -scores[-1] if scores else math.inf
    wrong = checkpoint.fewest_wrong(folder)
    return math.inf if wrong is None else wrong
