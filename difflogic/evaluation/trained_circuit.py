"""The trained circuit that is evaluated or rendered, and the run it comes from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from difflogic.devices import open as placement
from difflogic.engine.api import Engine
from difflogic.errors import CheckpointError, RunFolderError
from difflogic.runs import chosen, manifest
from difflogic.runs.journal import Row, last_evaluated, read_rows
from difflogic.system.brief import brief


@dataclass(frozen=True, eq=False)
class TrainedCircuit(chosen.Chosen):
    """One model of a run that was trained: the best, unless another is asked for."""

    rows: Sequence[Row]
    """The run's metrics; none where only a checkpoint file was named."""

    __repr__ = brief

    @property
    def folder(self) -> Path | None:
        """The run folder, where results are kept: of several attempts that of them all."""
        return self.named if self.named.is_dir() else None

    @property
    def first_solved(self) -> int | None:
        """The first epoch whose evaluation found no wrong value."""
        return next((row.epoch for row in self.rows if row.hard_loss == 0), None)

    @property
    def last_evaluation(self) -> Row | None:
        """The row of its evaluation on the probes, or of the last one before that."""
        return last_evaluated(self.rows[: self.epoch])

    @property
    def title(self) -> str:
        if self.epoch == 0:
            return f"{self.config.name}, built without training"
        which = f" of {len(self.seeds)} models" if len(self.seeds) > 1 else ""
        return f"{self.config.name}, seed {self.config.seed}{which}, after epoch {self.epoch}"


def load(path: Path, member: int | None = None) -> TrainedCircuit:
    """Return a run's best circuit, by `difflogic.runs.chosen`, or the last of the model counted `member` from 1.

    Raises CheckpointError where there is no usable or no trained checkpoint, UsageError for a member that is not
    there, RunFolderError where the metrics cannot be read.
    """
    found = chosen.load(path, member)
    if found.epoch == 0 and not found.kept:
        raise CheckpointError(
            f"The run in {path} has no trained circuit yet: its checkpoint is of epoch 0. Train it first."
        )
    try:
        rows = read_rows(found.path, found.seeds)[found.index] if found.path.is_dir() else []
    except OSError as error:
        raise RunFolderError(f"Cannot read the metrics in {path}: {error.strerror or error}.") from error
    return TrainedCircuit(**vars(found), rows=rows[: max(found.last, found.epoch)])


def engine_of(trained: TrainedCircuit) -> Engine:
    """The engine that tests a run's circuit. Hard rollouts are exact on all engines, so only speed matters."""
    # A checkpoint file lies in its run's folder, whose manifest says which engine trained it.
    folder = trained.path if trained.path.is_dir() else trained.path.parent
    return placement.place_hard(manifest.last_engine(manifest.read(folder))).engine
