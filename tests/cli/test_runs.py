"""`difflogic runs` and `difflogic show`: what there is, whole or broken."""

import json
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from difflogic.config.request import TrainRequest
from difflogic.devices.open import open_engine
from difflogic.runs import attempts, checkpoint, manifest, request_file
from difflogic.runs import folder as folders
from difflogic.runs.run_list import Broken, Entry, find, read
from difflogic.train.trainer import Trainer
from tests.cli.conftest import Said
from tests.train.tiny import tiny_config


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs, one of them of three seeds, one level deeper than the other."""
    folder = tmp_path_factory.mktemp("trained") / "all"
    config = tiny_config()
    Trainer(config.with_(train={"epochs": 3}), open_engine("reference")).run(out=folder / "one")
    Trainer(config.with_(train={"epochs": 2}), open_engine("cpu")).run(out=folder / "group/three", population=3)
    return folder


@pytest.fixture
def runs(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(trained, tmp_path / "all")
    monkeypatch.chdir(tmp_path)
    return Path("all")


def changed(run: Path, **fields: Any) -> None:
    record = json.loads((run / manifest.NAME).read_text())
    (run / manifest.NAME).write_text(json.dumps(record | fields))


def listed(said: Said, *arguments: object) -> list[dict[str, Any]]:
    return [json.loads(line) for line in said("runs", "all", "--json", *arguments).out.splitlines()]


@pytest.mark.parametrize("is_terminal", [True, False])
def test_control_characters_in_names_are_escaped(is_terminal: bool, runs: Path, said: Said, monkeypatch) -> None:
    """Neither the title of a window nor the direction of writing is a run's to change."""
    changed(runs / "one", name="a\x1b]0;b\x07\u202ec")
    (runs / "circuit.json").write_text('{"format": "\\u001b[31m"}')
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    monkeypatch.setenv("COLUMNS", "60" if is_terminal else "200")
    printed = [said("runs", "all").out, said("show", "all/one").out, said("show", "all/circuit.json", code=2).err]
    assert r"a\x1b]0;b\x07\u202ec" in printed[0]
    assert r"\x1b[31m" in printed[2]
    assert not re.search("\x1b\\]|\x1b\\[31m|\x07|\u202e", "".join(printed))


def test_command_prints_a_table(runs: Path, said: Said) -> None:
    lines = [line.split() for line in said("runs", runs, "--sort", "name").out.splitlines()]
    assert lines[0][:4] == ["run", "what", "engine", "epochs"]
    assert lines[1][:4] == ["group/three", "tiny", "cpu", "2/2"]
    assert lines[2][:4] == ["one", "tiny", "reference", "3/3"]
    assert len(lines) == 3


def test_columns_show_the_facts_of_a_run(runs: Path, said: Said) -> None:
    three, one = listed(said, "--sort", "name")
    rows = [json.loads(line) for line in (runs / "one/metrics.jsonl").read_text().splitlines()]
    assert (one["path"], one["name"], one["status"], one["seed"]) == ("all/one", "tiny", "complete", 23)
    assert (one["epoch"], one["epochs"], one["members"]) == (3, 3, 1)
    assert one["soft_loss"] == rows[-1]["soft_loss"]
    assert one["hard_loss"] == rows[-1]["hard_loss"]
    assert one["size"] == sum(file.stat().st_size for file in (runs / "one").iterdir())
    last = [json.loads(line) for line in (runs / "group/three/metrics.jsonl").read_text().splitlines()][-3:]
    assert three["members"] == 3
    assert three["soft_loss"] == min(row["soft_loss"] for row in last)
    assert three["hard_loss"] == min(row["hard_loss"] for row in last)


def test_runs_are_filtered_and_sorted(runs: Path, said: Said) -> None:
    names = [each["path"] for each in listed(said, "--sort", "epochs")]
    assert names == ["all/group/three", "all/one"]
    assert [each["path"] for each in listed(said, "--sort", "epochs", "--reverse")] == names[::-1]
    assert [each["engine"] for each in listed(said, "--engine", "cpu")] == ["cpu"]
    assert len(listed(said, "--preset", "tiny")) == 2
    assert listed(said, "--preset", "lizard") == []
    assert listed(said, "--solved") == []
    assert len(listed(said, "--unsolved")) == 2
    for order in ("name", "date", "soft", "hard", "size"):
        assert len(listed(said, "--sort", order)) == 2


def test_best_circuit_decides_if_a_run_is_solved(runs: Path, said: Said) -> None:
    """The checkpoint decides, since rows of metrics have no checksum; they only give the number of solved models."""
    run = runs / "group/three"
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    lines[-2] |= {"hard_loss": 0, "accuracy": 1.0}
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert listed(said, "--solved") == []
    best = replace(checkpoint.load(run / checkpoint.BEST), best=0)
    (run / checkpoint.BEST).write_bytes(checkpoint.Checkpoint((best,)).encode())
    (found,) = listed(said, "--solved")
    assert (found["solved"], found["hard_loss"]) == (1, 0)
    assert "1 of 3" in said("runs", runs, "--solved").out
    (run / checkpoint.BEST).write_bytes((run / checkpoint.BEST).read_bytes()[:-1])
    assert "best.safetensors is corrupt: " in said("runs", runs).err


@pytest.mark.parametrize(("text", "why"), [
    ("{", "its manifest.json cannot be used"),
    ("[]", "expected a JSON object"),
    ("[" * 100_000, "its manifest.json cannot be used"),
    ("{}", "its manifest.json has no 'format'"),
    ('{"format": 9, "versions": {"difflogic": "7.0"}}', "expected format 1, got 9, written by difflogic 7.0"),
    ('{"format": 1, "seed": 3}', "its manifest.json has no"),
    ('{"format": 1, "seed": 3, "seeds": 7}', "its manifest.json cannot be used"),
    (None, "No such file or directory"),
])  # fmt: skip
def test_broken_runs_are_named(runs: Path, said: Said, text: str | None, why: str) -> None:
    file = runs / "one" / manifest.NAME
    file.unlink() if text is None else file.write_text(text)
    out, errors = said("runs", runs)
    assert "group/three" in out
    assert errors.startswith("Not listed: all/one, ")
    assert why in errors
    assert errors.count("\n") == 1
    assert why in said("show", "all/one", code=1).err


@pytest.mark.parametrize("change", [{"population": 1e308}, {"population": 0}, {"attempts": []}, {"restarts": 10**400},
                                    {"attempts": [{"number": "x"}]}])  # fmt: skip
def test_restarts_with_odd_values_are_named(runs: Path, said: Said, change: dict[str, object]) -> None:
    request = TrainRequest(config=tiny_config(), restarts=2)
    attempts.Record(request, (attempts.Attempt(1, 3, 23, 3, ""),)).write(runs / "one")
    file = runs / "one" / (attempts.NAME if "attempts" in change else request_file.NAME)
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    assert f"{file.name} cannot be used: " in said("runs", runs).err


def test_running_run_is_listed(runs: Path, said: Said) -> None:
    changed(runs / "one", status="running", ended=None)
    lines = (runs / "one/metrics.jsonl").read_text().splitlines(keepends=True)
    (runs / "one/metrics.jsonl").write_text("".join(lines[:2]) + '{"epoch": 3, "soft')
    found = read(runs / "one")
    assert (found.status, found.epoch) == ("killed", 2)
    with folders.locked(runs / "one"):
        assert read(runs / "one").status == "running"
    (runs / "one/metrics.jsonl").write_text("")
    (runs / "one" / checkpoint.BEST).unlink()
    empty = read(runs / "one")
    assert (empty.epoch, empty.soft_loss, empty.hard_loss, empty.solved) == (0, None, None, 0)
    assert "0/3" in said("runs", runs).out


def test_empty_folder_is_reported(tmp_path: Path, said: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "runs does not exist: expected a folder that contains runs." in said("runs", code=2).err
    Path("runs").mkdir()
    assert said("runs").out == "runs: no runs found.\n"
    Path("file").write_text("")
    assert "file is a file: expected a folder that contains runs." in said("runs", "file", code=2).err


def test_run_folder_lists_itself(runs: Path) -> None:
    assert list(find(runs / "one")) == [runs / "one"]
    assert isinstance(read(runs / "one"), Entry)
    assert isinstance(read(runs / "group"), Broken)


def test_show_prints_the_run(runs: Path, said: Said) -> None:
    out = said("show", "all/group/three").out
    for text in (
        "Run:       all/group/three, tiny, complete",
        "Task:      checkerboard from random, 6x5 grid, 3 steps, synchronous",
        " gates per cell, of 54 soft gates; 2 channels, 2 perception kernels, zero boundary",
        "Training:  epoch 2 of 2, batch 3, lr 0.05, seed 23 to 25",
        "Engine:    cpu: ",
        "checkpoint.safetensors",
        "metrics.csv",
        "The run is complete. Train it further with:  difflogic train --resume all/group/three --epochs 4",
    ):
        assert text in out
    assert out.count("(best)") == 1
    assert sum(line.split()[1:2] in (["23"], ["24"], ["25"]) or "(best)" in line for line in out.splitlines()) >= 3


def test_show_prints_json(runs: Path, said: Said) -> None:
    data = json.loads(said("show", "all/one", "--json").out)
    assert data["manifest"]["config"]["name"] == "tiny"
    assert data["models"][0]["seed"] == 23
    assert data["models"][0]["last"]["epoch"] == 3
    assert data["files"]["summary.txt"] > 100


def test_show_describes_files(runs: Path, said: Said) -> None:
    said_of_text = said("show", "all/one/summary.txt", code=2).err
    assert "all/one/summary.txt is not a circuit: expected a run folder" in said_of_text
