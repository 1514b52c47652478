"""Run folders: occupied, locked, full."""

import errno
import json
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from difflogic.config.schema import Config
from difflogic.devices.open import open_engine
from difflogic.engine import job
from difflogic.engine.api import Engine
from difflogic.errors import RunFolderError
from difflogic.model import netlist_json
from difflogic.model.statistics import undecided_gates
from difflogic.runs import checkpoint
from difflogic.runs import folder as folders
from difflogic.runs.folder import RunFolder
from difflogic.train.observer import Beginning, Observer
from difflogic.train.run import Run
from difflogic.train.trainer import Trainer
from tests.train import child, processes
from tests.train.tiny import assert_same_run, every

HEADER = "epoch,soft_loss,train_hard_loss,hard_loss,accuracy,best,gap,undecided,elapsed_s"


@pytest.fixture(scope="session")
def engine() -> Engine:
    """A run folder is the same with every engine; tests/train checks this for its numbers."""
    return open_engine("reference")


class FullDisk(Observer):
    """The disk is full from an epoch on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, epoch: int) -> None:
        self.monkeypatch, self.epoch = monkeypatch, epoch

    def began(self, beginning: Beginning) -> None:
        if self.epoch == 0:
            self.fill()

    def advanced(self, epoch: int) -> None:
        if epoch == self.epoch:
            self.fill()

    def fill(self) -> None:
        def refuse(*arguments: Any) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        self.monkeypatch.setattr(os, "write", refuse)


def test_what_a_run_leaves(finished: Run, config: Config, engine: Engine) -> None:
    assert {child.name for child in finished.path.iterdir()} - {folders.LOCK} == {
        "manifest.json", "config.toml", "metrics.jsonl", "metrics.csv", "checkpoint.safetensors",
        "checkpoint.previous.safetensors", "best.safetensors", "circuit.json", "loss.png", "rollout.gif",
        "summary.txt", "target.png", "request.json",
    }  # fmt: skip
    assert Config.load(finished.path / "config.toml") == config
    assert (finished.path / "summary.txt").read_text() == finished.summary
    with Image.open(finished.path / "loss.png") as picture:
        assert picture.format == "PNG"
    with Image.open(finished.path / "rollout.gif") as animation:
        assert animation.size == (6 * 85, 5 * 85)
        assert animation.info["loop"] == 0


def test_circuit_json_is_the_trained_hard_circuit(finished: Run, config: Config, engine: Engine) -> None:
    x = job.probes(config)
    netlist = netlist_json.load(finished.path / "circuit.json")
    assert np.array_equal(netlist.rollout(x, 3), engine.rollout(finished.circuit, x, 3, "hard"))
    wrong = netlist.rollout(x, 3)[-1][..., :1] != job.target(config.task)
    assert wrong.sum() == finished.wrong == min(row.hard_loss for row in finished.metrics if row.hard_loss is not None)


def test_manifest(finished: Run, config: Config, engine: Engine) -> None:
    manifest = json.loads((finished.path / "manifest.json").read_text())
    assert manifest["status"] == "complete"
    assert (manifest["seed"], manifest["epoch"], manifest["resumes"]) == (23, 12, [])
    assert Config.from_dict(manifest["config"]) == config
    assert manifest["engine"]["engine"] == engine.info.engine
    assert {"difflogic", "python", "numpy"} <= set(manifest["versions"])
    assert manifest["started"] <= manifest["ended"]
    assert "commit" in manifest


def test_metrics_csv(finished: Run) -> None:
    lines = (finished.path / "metrics.csv").read_text().splitlines()
    assert lines[0] == HEADER
    cells = [dict(zip(HEADER.split(","), line.split(","), strict=True)) for line in lines[1:]]
    assert [int(row["epoch"]) for row in cells] == list(range(1, 13))
    assert [int(row["epoch"]) for row in cells if row["hard_loss"]] == [1, 5, 10, 12]
    for row, kept in zip(cells, finished.metrics, strict=True):
        assert float(row["soft_loss"]) == kept.soft_loss
        filled = {bool(row[name]) for name in ("train_hard_loss", "hard_loss", "accuracy", "best", "gap", "undecided")}
        assert filled == {kept.hard_loss is not None}
    judged = [row for row in finished.metrics if row.hard_loss is not None]
    assert [row.best for row in judged] == list(np.minimum.accumulate([row.hard_loss for row in judged]))
    assert all(row.accuracy == 1 - row.hard_loss / (4 * 5 * 6) for row in judged)
    assert all(row.gap == row.train_hard_loss - row.soft_loss for row in judged)
    assert judged[-1].undecided == undecided_gates(finished.state.logits)


def test_metrics_jsonl_agree_with_csv(finished: Run) -> None:
    rows = [json.loads(line) for line in (finished.path / "metrics.jsonl").read_text().splitlines()]
    lines = (finished.path / "metrics.csv").read_text().splitlines()[1:]
    for row, line in zip(rows, lines, strict=True):
        assert line == ",".join("" if row[name] is None else repr(row[name]) for name in HEADER.split(","))


def test_an_occupied_folder_is_refused(config: Config, engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("precious")
    with pytest.raises(RunFolderError) as caught:
        Trainer(config, engine).run(out=tmp_path)
    assert str(caught.value) == (
        f"The folder {tmp_path} is not empty: continue its run with --resume {tmp_path}, or choose another --out."
    )
    assert [child.name for child in tmp_path.iterdir()] == ["thesis.txt"]


def test_an_empty_folder_and_parents_are_welcome(config: Config, engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("empty", "a/b/c"):
        assert Trainer(config, engine).run(epochs=1, out=tmp_path / name).path == tmp_path / name


def test_a_file_is_not_a_folder(config: Config, engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunFolderError, match=r"is a file: choose another --out"):
        Trainer(config, engine).run(out=tmp_path / "file")
    with pytest.raises(RunFolderError, match=r"Cannot (use|create) the run folder .*: Not a directory\."):
        Trainer(config, engine).run(out=tmp_path / "file" / "under")


def test_a_folder_in_use_is_refused(config: Config, engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "busy"
    heard, told = child.pipe()
    process = child.start(path, engine="reference", told=told)
    heard.recv()
    with pytest.raises(RunFolderError, match=r"is in use by another process: wait for it to end"):
        Trainer(config, engine).run(resume=path)
    process.kill()
    process.join()
    Trainer(config, engine).run(resume=path)


def test_a_folder_taken_meanwhile_is_refused(config: Config, engine: Engine, tmp_path: Path) -> None:
    run = Trainer(config, engine).run(epochs=1, out=tmp_path / "one")
    lock = RunFolder(run.path)
    with pytest.raises(RunFolderError, match="in use"):
        RunFolder(run.path)
    lock.close()
    RunFolder(run.path).close()


@pytest.mark.parametrize("epoch", [0, 3, 5, 7, 12])
def test_a_full_disk(epoch: int, config: Config, engine: Engine, tmp_path, monkeypatch, finished: Run) -> None:
    path = tmp_path / "full"
    with monkeypatch.context() as patch, pytest.raises(RunFolderError) as caught:
        Trainer(config, engine).run(out=path, observer=every(1, FullDisk(patch, epoch)))
    saved = max(each for each in (0, 1, 5, 10) if each < max(epoch, 1))
    assert str(caught.value) == (
        f"Cannot write the metrics in the run folder {path}: No space left on device. The checkpoint of epoch "
        f"{saved} is intact: free some space, then continue with --resume {path}."
    )
    assert checkpoint.load(path).state.epoch == saved
    assert not list(path.glob("*.tmp"))
    Trainer(config, engine).run(resume=path)
    assert_same_run(finished.path, path)


@pytest.mark.parametrize("room", range(4))
def test_a_disk_full_from_the_start_leaves_nothing(room, config: Config, engine: Engine, tmp_path, monkeypatch) -> None:
    (tmp_path / "there").mkdir()
    real, left = os.write, [0]

    def refuse(*arguments: Any) -> int:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(*arguments)

    monkeypatch.setattr(os, "write", refuse)
    for name in ("new", "there"):
        left[0] = room  # writes: manifest, config, CSV header, checkpoint
        with pytest.raises(RunFolderError, match="No space left on device"):
            Trainer(config, engine).run(out=tmp_path / name)
    assert sorted(child.name for child in tmp_path.iterdir()) == ["there"]
    assert [child.name for child in (tmp_path / "there").iterdir() if child.name != folders.LOCK] == []


def test_a_file_size_limit_is_met_with_a_sentence(tmp_path: Path) -> None:
    """The kernel itself refuses: a part of the checkpoint is written, then an error comes."""
    script = (
        "import resource, sys; from pathlib import Path; from tests.train import child; "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000)); child.train(Path(sys.argv[1]), 'reference')"
    )
    done = processes.run_code(script, tmp_path / "small")
    assert "RunFolderError: Cannot write checkpoint.safetensors in the run folder" in done.stderr
    assert "File too large" in done.stderr
    assert done.returncode not in (0, -signal.SIGXFSZ)
    assert not (tmp_path / "small").exists()


def test_default_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    first = folders.default_path("checkerboard")
    assert first.parent == Path("runs")
    assert first.name.startswith("checkerboard-20")
    assert len(first.name) == len("checkerboard-20250101-120000")
    for _ in range(3):
        path = folders.default_path("checkerboard")
        path.mkdir(parents=True)
    assert len(list(Path("runs").iterdir())) == 3


def test_metrics_have_to_be_opened(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="call start_journal first"):
        RunFolder(tmp_path).append([])
