"""Runs that version 0.1.0 wrote are shown, exported, hardened and resumed by every later version."""

import json
import zipfile
from pathlib import Path

import pytest

from difflogic.config.schema import Config
from difflogic.runs import chosen
from tests.cli.conftest import Call


@pytest.fixture(autouse=True)
def _runs(tmp_path: Path) -> None:
    """`single`, with a sample pool and hardening, and `restarted`, of one attempt."""
    zipfile.ZipFile(Path(__file__).parents[1] / "data" / "runs_0.1.0.zip").extractall(tmp_path)


@pytest.mark.parametrize(("run", "commands"), [
    ("single", ["show single", "simulate single/circuit.json", "export single --format verilog -o single.v"]),
    ("restarted", ["show restarted", "runs .", "harden restarted --epochs 7 --engine reference"]),
])  # fmt: skip
def test_every_command_reads_runs_of_older_versions(run: str, commands: list[str], difflogic: Call) -> None:
    found = chosen.load(Path(run))
    assert (found.last, found.model.best) == (6, 61)
    assert found.model.config == Config.load(found.path / "config.toml")
    for command in commands:
        done = difflogic(*command.split())
        assert done.code == 0, (command, done.errors)


@pytest.mark.parametrize("more", [{"is_built": True}, {"completes": 1}])
def test_unneeded_attempt_is_over(more: dict[str, object], difflogic: Call) -> None:
    file = Path("restarted/restarts.json")
    data = json.loads(file.read_text())
    second = {"number": 2, "epochs": 1, "epoch": 0, "status": "interrupted"}
    data["attempts"].append(data["attempts"][0] | second | more)
    file.write_text(json.dumps(data))
    assert "it was not to be trained" in difflogic("show", "restarted").out
    assert "has no attempts left" in difflogic("train", "--resume", "restarted").errors


@pytest.mark.parametrize("run", ["single", "restarted/attempt-1"])
def test_runs_of_older_versions_are_resumed(run: str, difflogic: Call) -> None:
    before = (Path(run) / "metrics.jsonl").read_text().splitlines()
    assert difflogic("train", "--resume", run, "--epochs", 8, "--engine", "reference").code == 0
    rows = (Path(run) / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(row)["epoch"] for row in rows] == list(range(1, 9))
    assert rows[:5] == before[:5]
