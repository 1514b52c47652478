"""A run with restarts is a run to every command, and of every run the best circuit is taken, which is said."""

import json
import shlex
import shutil
from pathlib import Path

import pytest

from difflogic.runs import attempts, checkpoint, chosen
from tests.cli.conftest import Call

OUT = "my run"
SHORT = ("--engine", "cpu", "--eval-interval", 5, "--set", "task.start=zeros", "--set", "optimizer.lr=0")


@pytest.fixture
def run(difflogic: Call) -> Path:
    """Two attempts of 15 and 45 epochs."""
    assert difflogic("train", "tiny", *SHORT, "--epochs", 60, "--restarts", 1, "--out", OUT).code == 0
    return Path(OUT)


@pytest.mark.parametrize("command", [
    "export --format json --out exported", "evaluate --quick --engine cpu", "simplify -o small.json",
    "prove --judge difflogic", "simulate --steps 1 --size 8x8 --engine reference", "render -o film.gif --engine cpu",
    "gallery --out pages", "bench --gradients --engine cpu",
])  # fmt: skip
def test_every_command_uses_and_names_the_best_attempt(difflogic: Call, run: Path, command: str) -> None:
    found = chosen.load(run)
    code, _, errors = difflogic(*command.split(), OUT, *([OUT] if command.startswith("prove") else []))
    assert code == 0
    assert found.told in errors
    assert found.told.startswith(f"{OUT}/attempt-")
    assert f"with {found.model.best} wrong cell" in found.told


def test_results_are_saved_in_the_named_folder(difflogic: Call, run: Path) -> None:
    assert difflogic("prove", OUT).code == 1
    assert difflogic("evaluate", OUT, "--quick", "--engine", "cpu").code == 0
    for name in ("proof.json", "evaluation.json"):
        assert [path.parent for path in run.rglob(name)] == [run]


def test_new_run_starts_from_the_best_attempt(difflogic: Call, run: Path) -> None:
    for command in (("harden", OUT, "--epochs", 2), ("train", "tiny", "--epochs", 2, "--init-from", OUT)):
        code, out, errors = difflogic(*command, "--engine", "cpu", "--out", command[0])
        assert (code, errors) == (0, "")
        assert f"Initialized from {chosen.load(run).told}\n" in out


def test_show_and_runs_list_attempts(difflogic: Call, run: Path) -> None:
    _, out, _ = difflogic("show", OUT)
    assert f"Chosen:    {chosen.load(run).told}" in out
    assert "attempt 1: given up at epoch 15 with " in out
    assert "attempt 2: complete at epoch 45 with " in out
    taken = chosen.run_folder(run)
    assert f"The run is complete. Train it further with:  difflogic train --resume '{taken}' --epochs " in out
    command = shlex.split(out.rpartition("with:  difflogic ")[2])
    assert difflogic(*command).code == 0
    assert checkpoint.read(taken).epoch == 120
    shown = json.loads(difflogic("show", OUT, "--json").out)
    assert [each["status"] for each in shown["tries"]] == ["given up", "complete"]
    assert shown["best"]["epoch"] == chosen.load(run).epoch
    assert difflogic("runs", ".").out.count("tiny") == 1
    (listed,) = map(json.loads, difflogic("runs", ".", "--json").out.splitlines())
    assert (listed["epoch"], listed["epochs"], listed["attempts"]) == (60, 60, 2)


def test_resume_continues_the_run_with_its_attempts(difflogic: Call, run: Path) -> None:
    code, _, errors = difflogic("train", "--resume", OUT, "--engine", "cpu")
    assert (code, errors.count("\n")) == (2, 1)
    advice = f"continue one of them, for example with --resume '{OUT}/attempt-2'"
    assert f"has ended and has no attempts left: {advice}" in errors
    record = attempts.read(run)
    shutil.rmtree(run / "attempt-2")
    attempts.Record(record.request, record.attempts[:1]).write(run)
    assert "Continue with:  difflogic train --resume 'my run'" in difflogic("show", OUT).out
    assert "omit --epochs" in difflogic("train", "--resume", OUT, "--epochs", 100).errors
    code, out, errors = difflogic("train", "--resume", OUT, "--json")
    assert (code, errors) == (0, "")
    events = [json.loads(line) for line in out.splitlines()]
    told = [event for event in events if event["event"] == "attempt"]
    assert [(each["number"], each["of"], each["status"]) for each in told] == [(2, 2, "running"), (2, 2, "complete")]
    assert told[0]["reason"] == "attempt 1 was stopped early at epoch 15, as its soft loss hardly fell"
    assert [each["epoch"] for each in events[-1]["attempts"]] == [15, 45]
    assert attempts.read(run) == record


def test_killed_run_is_reported(difflogic: Call) -> None:
    assert difflogic("train", "tiny", *SHORT, "--epochs", 10, "--out", OUT).code == 0
    manifest = Path(OUT) / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"status": "complete"', '"status": "running"'))
    assert " killed " in difflogic("runs", ".").out
    out = difflogic("show", OUT).out
    assert "tiny, killed\n" in out
    advice = "Its process was killed. Continue from the last checkpoint with:  difflogic train --resume 'my run'\n"
    assert out.endswith(advice)


def test_accuracy_is_shown_with_its_epoch(difflogic: Call) -> None:
    _, out, _ = difflogic("train", "tiny", "--engine", "cpu", "--epochs", 10, "--log-interval", 3, "--out", OUT)
    lines = {line[:10]: line for line in out.splitlines() if line.startswith("Epoch")}
    assert lines["Epoch    5"].endswith("% right)")
    assert lines["Epoch    6"].endswith("% right) at epoch 5")
    assert checkpoint.load(Path(OUT)).state.epoch == 10
