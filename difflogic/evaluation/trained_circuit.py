"""Load trained circuits and their metrics, for evaluating or drawing."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from difflogic.devices import open as placement
from difflogic.engine.api import Engine
from difflogic.errors import CheckpointError, RunFolderError
from difflogic.runs import chosen, manifest
from difflogic.runs.journal import Row, last_evaluated, read_rows
from difflogic.system.brief import brief
from difflogic.system.words import counted


@dataclass(frozen=True, eq=False)
class TrainedCircuit(chosen.Chosen):
    """Trained model of a run: the best model, or the selected member of a population."""

    rows: Sequence[Row]
    """Metrics of the model, one row per epoch; empty if loaded from a checkpoint file."""

    __repr__ = brief

    @property
    def folder(self) -> Path | None:
        """Folder for results: the run folder or the common folder of all attempts, or None for a checkpoint file."""
        return self.named if self.named.is_dir() else None

    @property
    def first_solved(self) -> int | None:
        """First epoch whose evaluation had no mismatches, or None."""
        return next((row.epoch for row in self.rows if row.hard_loss == 0), None)

    @property
    def last_evaluation(self) -> Row | None:
        """Last row of metrics with an evaluation, up to the epoch of the model, or None."""
        return last_evaluated(self.rows[: self.epoch])

    @property
    def title(self) -> str:
        if self.epoch == 0:
            return f"{self.config.name}, built without training"
        which = f" of {len(self.seeds)} models" if len(self.seeds) > 1 else ""
        return f"{self.config.name}, seed {self.config.seed}{which}, after epoch {self.epoch}"

    @property
    def facts(self) -> str:
        """Description of the circuit and its task, for readers."""
        task, train, model = self.config.task, self.config.train, self.config.model
        fires = f"each updated with probability {train.fire_rate:g}"
        rate = fires if train.asynchronous else "all updated in each step"
        shape = "" if model.neighbourhood == "moore" else f", neighbourhood {model.neighbourhood}"
        return (
            f"{model.gates} soft gates trained for {self.epoch} epochs; {task.width}x{task.height} cells of "
            f"{counted(model.channels, 'channel')}{shape}, {rate}, compared after {counted(task.steps, 'step')}; the "
            f"grid {'wraps around' if model.periodic else 'is 0 outside'}; start: {task.start}."
        )


def load(path: Path, member: int | None = None) -> TrainedCircuit:
    """Load a run's best circuit (see `difflogic.runs.chosen`), or the last state of model `member` (from 1).

    Raises CheckpointError without a usable, trained checkpoint, UsageError for an unknown member, or RunFolderError.
    """
    model = chosen.load(path, member)
    if model.epoch == 0 and not model.kept:
        raise CheckpointError(
            f"The run in {path} has no trained circuit yet, since its checkpoint is from epoch 0: train it first."
        )
    try:
        rows = read_rows(model.path, model.seeds)[model.index] if model.path.is_dir() else []
    except OSError as error:
        raise RunFolderError(f"Cannot read the metrics in {path}: {error.strerror or error}.") from error
    return TrainedCircuit(**vars(model), rows=rows[: max(model.last, model.epoch)])


def engine_of(trained: TrainedCircuit) -> Engine:
    """Return an engine to test a run's circuit, if possible that of the run; all engines give equal hard rollouts."""
    # A checkpoint file is in the folder of its run, whose manifest names the engine.
    folder = trained.path if trained.path.is_dir() else trained.path.parent
    return placement.place_hard(manifest.last_engine(manifest.read(folder))).engine
