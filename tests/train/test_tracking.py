"""Tracking with TensorBoard, MLflow and Weights & Biases, read back by them, and errors without them."""

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from difflogic.devices.open import open_engine
from difflogic.errors import MissingPackagesError, UsageError
from difflogic.train import tracking
from difflogic.train.run import Run
from difflogic.train.tracking import Tracker, tracked
from difflogic.train.trainer import Trainer
from tests.train.tiny import every, tiny_config


def train(folder: Path, *places: str) -> tuple[Run, list[str]]:
    told: list[str] = []
    with tracked(*places, warn=told.append) as observer:
        run = Trainer(tiny_config(epochs=3), open_engine("reference")).run(out=folder, observer=every(1, observer))
    return run, told


def test_tensorboard_receives_metrics_and_files(tmp_path: Path) -> None:
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    run, told = train(tmp_path / "run", f"tensorboard:{tmp_path / 'logs'}")
    found = events.EventAccumulator(str(tmp_path / "logs" / "run")).Reload()
    losses = [(each.step, each.value) for each in found.Scalars("soft_loss")]
    assert losses == [(row.epoch, pytest.approx(row.soft_loss)) for row in run.metrics]
    assert {"loss", "rollout"} <= set(found.Tags()["images"])
    assert not told


def test_mlflow_receives_metrics_and_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Newer versions need an option for a store in a folder."""
    pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    from mlflow.tracking import MlflowClient

    store = (tmp_path / "store").as_uri()
    run, told = train(tmp_path / "run", f"mlflow:{store}")
    assert not told
    client = MlflowClient(store)
    (found,) = client.search_runs([client.get_experiment_by_name("difflogic").experiment_id])
    losses = [(each.step, each.value) for each in client.get_metric_history(found.info.run_id, "soft_loss")]
    assert losses == [(row.epoch, pytest.approx(row.soft_loss)) for row in run.metrics]
    assert (found.data.params["task.target"], found.info.status) == ("checkerboard", "FINISHED")
    assert "circuit.json" in {each.path for each in client.list_artifacts(found.info.run_id)}


def test_wandb_receives_metrics_and_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb")
    for name, value in (("WANDB_MODE", "offline"), ("WANDB_DIR", str(tmp_path)), ("WANDB_SILENT", "true")):
        monkeypatch.setenv(name, value)
    _, told = train(tmp_path / "run", "wandb:automata")
    assert not told
    (log,) = tmp_path.glob("wandb/offline-run-*/run-*.wandb")
    for _ in range(600):  # another process writes it
        if b"soft_loss" in log.read_bytes():
            return
        time.sleep(0.1)
    pytest.fail("W&B's own process never wrote the losses")


class Diary(Tracker):
    """Tracker that records the files of each run."""

    runs: ClassVar[list[list[str]]] = []

    def __init__(self, where: str) -> None:
        self.runs.clear()

    def begin(self, name: str, config: Mapping[str, Any]) -> None:
        self.runs.append([name])

    def log(self, epoch: int, values: Mapping[str, float]) -> None:
        pass

    def save(self, file: Path) -> None:
        self.runs[-1].append(f"{file.parent.name}/{file.name}")

    def close(self) -> None:
        self.runs[-1].append("closed")


def test_each_attempt_has_its_own_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(tracking.TRACKERS, "mlflow", Diary)
    with tracked("mlflow:there") as observer:
        for name in ("attempt-1", "attempt-2"):
            Trainer(tiny_config(epochs=1), open_engine("reference")).run(out=tmp_path / name, observer=observer)
    for name, run in zip(("attempt-1", "attempt-2"), Diary.runs, strict=True):
        assert (run[0], run[-1]) == (name, "closed")
        assert f"{name}/circuit.json" in run
        assert all(file.startswith(name) for file in run[1:-1])


class Unreachable(Tracker):
    """A server that is there when a run begins, and not any more after its first row."""

    error: Exception

    def __init__(self, where: str) -> None:
        self.rows: list[int] = []

    def begin(self, name: str, config: Mapping[str, Any]) -> None:
        assert config["task.target"] == "checkerboard"

    def log(self, epoch: int, values: Mapping[str, float]) -> None:
        if self.rows:
            raise self.error
        self.rows.append(epoch)

    def save(self, file: Path) -> None:
        raise AssertionError("it was asked again")

    def close(self) -> None:
        raise AssertionError("it was asked again")


@pytest.mark.parametrize(
    ("error", "words"),
    [(ConnectionError("connection refused\nlong"), "connection refused"), (BrokenPipeError(), "BrokenPipeError")],
)
def test_failing_tracker_is_reported_once(error: Exception, words: str, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(Unreachable, "error", error, raising=False)
    monkeypatch.setitem(tracking.TRACKERS, "mlflow", Unreachable)
    run, told = train(tmp_path / "run", "mlflow:http://localhost:1")
    assert (len(run.metrics), run.complete) == (3, True)
    assert told == [f"Tracking with mlflow:http://localhost:1 stopped, but training continues: {words}"]


@pytest.mark.parametrize("place", ["tensorboard", "mlflow:", "disk:here"])
def test_wrong_place_is_refused(place: str) -> None:
    with pytest.raises(UsageError, match=r"^Expected tensorboard:DIR, mlflow:URI or wandb:PROJECT, got"):
        train(Path("nowhere"), place)


def test_missing_package_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(MissingPackagesError, match="extra `tensorboard`"):
        train(Path("nowhere"), "tensorboard:logs")
