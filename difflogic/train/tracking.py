"""Experiment tracking with TensorBoard, MLflow, and Weights & Biases.

    with tracked("tensorboard:logs", "mlflow:http://localhost:5000", "wandb:automata") as observer:
        Trainer(config, engine).run(out=folder, observer=observer)

Each tracker receives the configuration, the losses, accuracies and unconverged gates of every row, and at the end the
summary, the rollout, the curves and the circuit. The small package tensorboardX writes the files of TensorBoard, which
is only needed to view these files. If a tracker fails, a warning is reported once, and training continues without the
tracker.
"""

import dataclasses
import os
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from operator import methodcaller
from pathlib import Path
from typing import Any

import numpy as np

from difflogic.errors import MissingPackagesError, UsageError, first_line
from difflogic.policies.rows import PolicyRow
from difflogic.runs.journal import Row
from difflogic.train.observer import Beginning, Observer, Standing

FILES = (
    *("config.toml", "circuit.json", "summary.txt", "metrics.csv"),
    *("loss.png", "returns.png", "accuracy.png", "rollout.gif"),
)
"""Names of files that a tracker stores, if they exist in the run folder."""
UNTRACKED = ("epoch", "skipped", "iteration", "steps")
"""Names of the fields of a row that are not tracked as curves."""


class Tracker(ABC):
    """Base class of the trackers."""

    errors: tuple[type[Exception], ...] = (OSError,)
    """Types of errors that the tracker raises if its service cannot be reached."""

    @abstractmethod
    def begin(self, name: str, config: Mapping[str, Any]) -> None:
        """Begin or continue a run in the tracker."""

    @abstractmethod
    def log(self, epoch: int, values: Mapping[str, float]) -> None:
        """Log the values of an epoch."""

    @abstractmethod
    def save(self, file: Path) -> None:
        """Save a file of the run folder in the tracker."""

    @abstractmethod
    def close(self) -> None:
        """End the run in the tracker."""


class TensorBoard(Tracker):
    """Tracker that writes event files into the subfolder of `folder` with the run's name."""

    def __init__(self, folder: str) -> None:
        from tensorboardX import SummaryWriter

        self._make, self._folder = SummaryWriter, Path(folder)

    def begin(self, name: str, config: Mapping[str, Any]) -> None:
        self._writer = self._make(str(self._folder / name))
        self._writer.add_text("config", "\n".join(f"    {key} = {value}" for key, value in config.items()))

    def log(self, epoch: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, epoch)

    def save(self, file: Path) -> None:
        if file.suffix in (".png", ".gif"):
            from PIL import Image, ImageSequence

            with Image.open(file) as image:
                frames = [np.asarray(frame.convert("RGB")) for frame in ImageSequence.Iterator(image)]
            # A recording would need another package, so the image shows its first and last frames side by side.
            shown = frames[0] if len(frames) == 1 else np.concatenate([frames[0], frames[-1]], axis=1)
            self._writer.add_image(file.stem, shown, dataformats="HWC")
        elif file.suffix == ".txt":
            self._writer.add_text(file.stem, file.read_text())

    def close(self) -> None:
        self._writer.close()


class MLflow(Tracker):
    """Tracker for the experiment `difflogic` in the store at `uri`: a server, or a local folder or database."""

    def __init__(self, uri: str) -> None:
        # By default the client of MLflow retries for minutes, while training waits.
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "5")
        from mlflow.entities import Metric
        from mlflow.exceptions import MlflowException
        from mlflow.tracking import MlflowClient

        self.errors = (OSError, MlflowException)
        self._connect, self._run, self._metric = partial(MlflowClient, uri), "", Metric

    def begin(self, name: str, config: Mapping[str, Any]) -> None:
        self._client = self._connect()
        known = self._client.get_experiment_by_name("difflogic")
        experiment = known.experiment_id if known else self._client.create_experiment("difflogic")
        self._run = self._client.create_run(experiment, run_name=name).info.run_id
        for key, value in config.items():
            self._client.log_param(self._run, key, str(value)[:500])

    def log(self, epoch: int, values: Mapping[str, float]) -> None:
        # All values are sent in one request, since training waits.
        time_ms = int(1000 * time.time())
        self._client.log_batch(self._run, [self._metric(name, value, time_ms, epoch) for name, value in values.items()])

    def save(self, file: Path) -> None:
        self._client.log_artifact(self._run, str(file))

    def close(self) -> None:
        self._client.set_terminated(self._run)


class WandB(Tracker):
    """Tracker for a project of Weights & Biases; with `WANDB_MODE=offline`, it writes to the folder `wandb`."""

    def __init__(self, project: str) -> None:
        import wandb

        self.errors = (OSError, wandb.errors.Error)
        self._wandb, self._project = wandb, project

    def begin(self, name: str, config: Mapping[str, Any]) -> None:
        self._run = self._wandb.init(project=self._project, name=name, config=dict(config))

    def log(self, epoch: int, values: Mapping[str, float]) -> None:
        self._run.log(dict(values), step=epoch)

    def save(self, file: Path) -> None:
        if file.suffix in (".png", ".gif"):
            kind = self._wandb.Image if file.suffix == ".png" else self._wandb.Video
            self._run.log({file.stem: kind(str(file))})
        artifact = self._wandb.Artifact(f"{self._run.id}-{file.stem}", type="result")
        artifact.add_file(str(file))
        self._run.log_artifact(artifact)

    def close(self) -> None:
        self._run.finish()


TRACKERS: dict[str, Callable[[str], Tracker]] = {"tensorboard": TensorBoard, "mlflow": MLflow, "wandb": WandB}
"""Mapping from names of trackers, which are also the names of their extras, to classes."""


def opened(place: str) -> Tracker:
    """Open a tracker: `tensorboard:DIR`, `mlflow:URI` or `wandb:PROJECT`. Raises UsageError or MissingPackagesError."""
    kind, _, where = place.partition(":")
    if kind not in TRACKERS or not where:
        raise UsageError(f"Expected tensorboard:DIR, mlflow:URI or wandb:PROJECT, got {place!r}.")
    try:
        return TRACKERS[kind](where)
    except ImportError as error:
        raise MissingPackagesError.of(f"The tracker {kind}", kind, error.name) from error


class Tracking(Observer):
    """Observer that passes reports to trackers; for a population, it passes the best and the median loss."""

    def __init__(self, trackers: Mapping[str, Tracker], warn: Callable[[str], None]) -> None:
        self._trackers, self._warn = dict(trackers), warn
        self._begun: Beginning | None = None

    def began(self, beginning: Beginning) -> None:
        name = beginning.path.name if beginning.path else beginning.config.name
        config = {f"{section}.{key}" if isinstance(values, dict) else section: value
                  for section, values in beginning.config.to_dict().items()
                  for key, value in (values.items() if isinstance(values, dict) else [("", values)])}  # fmt: skip
        self.close()  # the previous attempt
        self._all(lambda tracker: tracker.begin(name, config))
        self._begun = beginning

    def logged(self, row: Row, evaluated: Row | None) -> None:
        self._log(row.epoch, {key: value for key, value in dataclasses.asdict(row).items() if key not in UNTRACKED})

    def compared(self, standing: Standing) -> None:
        least, median = standing.soft_losses
        self._log(standing.epoch, {"soft_loss": least, "median_soft_loss": median, "solved": standing.solved})

    def iterated(self, rows: Sequence[PolicyRow]) -> None:
        best = max(rows, key=lambda row: (-np.inf if row.score is None else row.score, row.mean_return or -np.inf))
        self._log(best.steps, {key: value for key, value in vars(best).items() if key not in UNTRACKED})

    def close(self) -> None:
        """Save the files in the last run's folder in the trackers, and end the run in each tracker."""
        if self._begun is None:
            return
        folder, self._begun = self._begun.path, None
        for file in [folder / name for name in FILES] if folder is not None else []:
            if file.is_file():
                self._all(methodcaller("save", file))
        self._all(lambda tracker: tracker.close())

    def _log(self, epoch: int, values: Mapping[str, float | None]) -> None:
        finite = {name: float(value) for name, value in values.items() if value is not None and np.isfinite(value)}
        self._all(lambda tracker: tracker.log(epoch, finite))

    def _all(self, do: Callable[[Tracker], None]) -> None:
        for place, tracker in [*self._trackers.items()]:
            try:
                do(tracker)
            except tracker.errors as error:
                del self._trackers[place]
                self._warn(f"Tracking with {place} stopped, but training continues: {first_line(error)}")


@contextmanager
def tracked(*places: str, warn: Callable[[str], None] = warnings.warn) -> Iterator[Tracking]:
    """Yield an observer for values of `--track`; `warn` reports failures. Raises UsageError or MissingPackagesError."""
    tracking = Tracking({place: opened(place) for place in places}, warn)
    try:
        yield tracking
    finally:
        tracking.close()


class Several(Observer):
    """Observer that passes all calls to several observers, with the `log_interval` of the first observer."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = observers
        for name in vars(Observer):
            if not name.startswith(("_", "wants_")) and callable(getattr(Observer, name)):
                setattr(self, name, partial(self._call_all, name))
        self.log_interval = observers[0].log_interval

    def wants_states(self) -> bool:
        return any(observer.wants_states() for observer in self._observers)

    def wants_pictures(self) -> bool:
        return any(observer.wants_pictures() for observer in self._observers)

    def _call_all(self, name: str, *arguments: Any) -> None:
        for observer in self._observers:
            getattr(observer, name)(*arguments)
