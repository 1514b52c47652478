"""`difflogic check-grad`: what it prints and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from difflogic.cli.main import main
from difflogic.devices import check_gradients
from difflogic.devices.check_gradients import Subject
from difflogic.model.circuit import ArraysByNetwork
from tests.cli.conftest import Call, Said


@pytest.fixture
def run(call: Call) -> Path:
    """A tiny run of two seeds, three epochs long."""
    assert call("--epochs", 3, "--population", 2, "--out", "here").code == 0
    return Path("here")


def test_a_run(run: Path, said: Said) -> None:
    lines = said("check-grad", run, "--engine", "cpu", "--samples", "2").out.splitlines()
    assert lines[0] == "tiny, here after epoch 3: 54 gates, 3 steps, batch 3"
    assert lines[1].startswith("cpu: ")
    assert lines[2].startswith("gradients of")
    assert sum(line.endswith("ok") for line in lines) == 6
    assert lines[-1] == "All agree."


def test_json_of_a_checkpoint_file(run: Path, said: Said) -> None:
    file = run / "checkpoint.safetensors"
    report = json.loads(said("check-grad", file, "--engine", "cpu", "--samples", "0", "--batch", "1", "--json").out)
    assert report["passed"]
    assert report["epoch"] == 3
    assert len(report["pairs"]) == 3
    assert set(report["pairs"][0]) == {"one", "other", "layer", "error", "allowed", "passed"}


def test_without_a_run_it_is_the_start(call: Call, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check-grad", "--engine", "cpu", "--samples", "0", "--batch", "2"]) == 0
    assert capsys.readouterr().out.startswith("tiny, before the first epoch: 54 gates, 3 steps, batch 2\n")


def test_a_batch_beyond_memory(run: Path, said: Said) -> None:
    error = said("check-grad", run, "--engine", "cpu", "--batch", "2000000000", code=1).err
    assert "\nError: The reference's gradients of a batch of 2000000000 need " in error, (
        "after the circuit that is taken"
    )
    assert " fits.\n" in error


def test_a_wrong_engine(call: Call, said: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(subject: Subject) -> ArraysByNetwork:
        logits = subject.circuit.logits
        return {network: [np.full_like(layer, np.inf) for layer in logits[network]] for network in logits}

    monkeypatch.setattr(
        check_gradients, "find", lambda *_: check_gradients.Oracles({"abacus": wrong}, {}, {"gpu": "It is not here."})
    )
    out = said("check-grad", "--samples", "1", code=1).out
    assert out.count("FAIL") == 3
    assert "Not compared: gpu. It is not here.\n" in out
    assert "NOT ALL AGREE" in out
    report = json.loads(said("check-grad", "--samples", "1", "--json", code=1).out)
    assert not report["passed"]
    assert [pair["error"] for pair in report["pairs"] if not pair["passed"]] == [None] * 3


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["nowhere"], 1, "There is no run folder or checkpoint at nowhere."),
        (["here", "--small"], 2, "--small says which circuit to start from, but RUN brings its own"),
        (["--engine", "abacus"], 2, "Unknown engine 'abacus'"),
        (["--batch", "0"], 2, "batch must be a whole number between 1 and 2147483648, got 0."),
    ],
)
def test_bad_input(arguments: list[str], code: int, text: str, call: Call, said: Said) -> None:
    assert text in said("check-grad", *arguments, code=code).err
