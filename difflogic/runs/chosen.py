"""Selection of the circuit with which commands represent a run: the best circuit of the best attempt."""

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
"""Path of a run folder or checkpoint file, or a `Run`, which is path-like."""


@dataclass(frozen=True, eq=False)
class Chosen:
    """Selected model of a run, with the reason for its selection."""

    path: Path
    """Run folder (of the chosen attempt if there are several), or the checkpoint file given by the caller."""
    model: ModelState
    last: int
    """Epoch of the last saved state of the run."""
    seeds: Sequence[int]
    told: str
    """Sentence for users that describes the chosen model."""
    kept: bool
    """True if the best model of the run was chosen; then `model.best` is its number of mismatches."""
    named: Path
    """Path given by the caller, which for several attempts is their common folder, where results are written."""

    @property
    def best(self) -> ModelState | None:
        """Chosen model if it is the best model of the run, otherwise None."""
        return self.model if self.kept else None

    @property
    def circuit(self) -> Circuit:
        return self.model.circuit

    @property
    def config(self) -> Config:
        """Configuration of the run with the seed of the chosen model."""
        return self.model.config

    @property
    def epoch(self) -> int:
        """Epoch of the chosen model, at most `last`."""
        return self.model.state.epoch

    def data(self) -> Dataset | None:
        """Return the samples of the run's task, or None if it has no samples. Raises DataError."""
        return dataset.of_run(self.config, self.path if self.path.is_dir() else self.path.parent)

    @property
    def index(self) -> int:
        """Index of the chosen model in the population of the run."""
        return self.seeds.index(self.config.seed)


def path_of(source: Source) -> Path:
    """Convert a run or a path to a Path. Raises UsageError for other types."""
    try:
        return Path(path_text(source) if isinstance(source, str) else source)
    except TypeError:
        kind = type(source).__name__
        raise UsageError(f"Expected a run or the path of its folder or file, got an object of type {kind}.") from None


def run_folder(path: Path) -> Path:
    """Return `path`, or if it is a folder of attempts, the run folder of the solved (otherwise best) attempt.

    The best attempt has the fewest mismatches or the highest score. Raises RunFolderError if there is no attempt.
    """
    if not attempts.is_in(path):
        return path
    folders = [folder for folder in path.glob("attempt-*") if folder.name[8:].isdigit() and checkpoint.is_in(folder)]
    if not folders:
        raise RunFolderError(f"The run in {path} has no saved attempt yet: continue it with --resume first.")
    folders.sort(key=lambda folder: int(folder.name[8:]))
    solved = [path / attempt.folder for attempt in attempts.read(path).attempts if attempt.status == "solved"]
    return solved[0] if solved and solved[0] in folders else min(folders, key=_shortfall)


def load(path: Path, member: int | None = None) -> Chosen:
    """Load the best model of a run, or the last state of model `member`, counted from 1.

    If `path` is a checkpoint file, only states in this file are loaded. Raises CheckpointError for an unusable
    checkpoint, UsageError for an unknown member, NotFoundError or RunFolderError.
    """
    folder = run_folder(Path(path))
    saved = checkpoint.read(folder)
    best = folder / checkpoint.BEST
    # The best state is preferred, since later epochs may have worse circuits.
    is_best = member is None and folder.is_dir() and best.exists()
    if is_best:
        model, name = checkpoint.load(best), "the best circuit"
    else:
        index = saved.best if member is None else _index(folder, member, saved.seeds)
        model, name = saved.members[index], "the last circuit" if folder.is_dir() else "the circuit"
    if len(saved.seeds) > 1:
        name += f" of seed {model.config.seed}"
    text = f"{folder}: {name}, of epoch {model.state.epoch}" if model.epoch else f"{folder}: the circuit"
    if is_best:
        result = f"with {counted(model.best, 'wrong cell')}" if model.best else "right"
        text += f", {result} on its evaluation grids" if model.epoch else ", built without training"
    if model.state.epoch < saved.epoch:
        text += f"; the last is from epoch {saved.epoch}"
    return Chosen(folder, model, saved.epoch, saved.seeds, text + ".", is_best, Path(path))


def _index(path: Path, member: int, seeds: Sequence[int]) -> int:
    if not 1 <= member <= len(seeds):
        range_ = f"1 to {len(seeds)}, of seeds {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else "1, its only model"
        raise UsageError(f"Unknown model {member} of {path}: expected {range_}.")
    return member - 1


def _shortfall(folder: Path) -> float:
    """Return the cost of an attempt: its mismatches or, for agents, the negated last score; infinity if unknown."""
    if manifest.is_policy(manifest.read(folder)):
        scores = [row["score"] for row in jsonl.objects(folder / JSONL) if row["score"] is not None]
        return -scores[-1] if scores else math.inf
    wrong = checkpoint.fewest_wrong(folder)
    return math.inf if wrong is None else wrong
