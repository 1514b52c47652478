"""`difflogic bench` and `difflogic profile` as commands."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from difflogic.bench import cases
from difflogic.bench.results import Results
from difflogic.cli.main import main
from difflogic.cli.screen import table
from difflogic.config import presets
from difflogic.errors import NoAdapterError
from tests.bench.made_up import TINY, line, make_results
from tests.cli.conftest import Said, complaints
from tests.train.tiny import tiny_config

QUICKLY = ("--quick", "--rounds", "1", "--engine", "reference")


@pytest.fixture(autouse=True)
def tiny_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases, "all_cases", lambda: TINY)
    monkeypatch.setattr("difflogic.bench.machine.COPIED_BYTES", 1 << 16)


@pytest.fixture
def results() -> Results:
    return make_results()


def test_list(said: Said) -> None:
    out = said("bench", "--list").out
    assert out.splitlines()[0].split() == ["case", "what", "is", "timed", "million", "gate", "evaluations"]
    assert [row.split()[0] for row in out.splitlines()[1:]] == [case.name for case in TINY]


def test_a_table(said: Said) -> None:
    captured = said("bench", *QUICKLY)
    assert "case        engine     median ms" in captured.out
    assert "train/tiny on reference is limited by: kernel" in captured.out
    assert "gate_backward" in captured.out
    assert "reference: NumPy" in captured.out
    assert "... train/tiny: train step" in captured.err


def test_json_is_the_results_file(said: Said, tmp_path: Path) -> None:
    out, picture = tmp_path / "a.json", tmp_path / "a.png"
    chosen = ("--case", "batch", "--case", "train", "--engine", "cpu")
    captured = said("bench", *QUICKLY, *chosen, "--json", "--out", out, "--picture", picture)
    assert complaints(captured.err) == []
    assert captured.out == out.read_text()
    found = [(each["case"], each["engine"]) for each in json.loads(captured.out)["cases"]]
    assert found == [("train/tiny", "reference"), ("train/tiny", "cpu"), ("batch/3", "cpu"), ("batch/12", "cpu")]
    assert picture.stat().st_size > 1000


def test_a_terminal_gets_a_drawn_table(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    table.show(("what", "ms"), [("[a]", "1.0")], "title")
    out = capsys.readouterr().out
    assert "[a]" in out
    assert "━" in out or "─" in out


def test_unknown_words(capsys: pytest.CaptureFixture[str], said: Said) -> None:
    assert main(["bench", "--case", "no/such"]) == 2
    assert capsys.readouterr().err.startswith("Error: No case 'no/such': expected one of train/tiny")
    assert "Unknown engine 'abacus'" in said("bench", "--engine", "abacus", code=2).err


@pytest.mark.parametrize(
    ("option", "file", "sentence"),
    [
        ("--out", "none/a.json", "There is no folder "),
        ("--picture", "none/a.png", "There is no folder "),
        ("--picture", "a.txt", "--picture draws .png, .svg, .pdf: "),
    ],
)
def test_nothing_is_measured_that_could_not_be_written(
    option: str, file: str, sentence: str, tmp_path: Path, said: Said
) -> None:
    assert said("bench", *QUICKLY, option, tmp_path / file, code=2).err.startswith(f"Error: {sentence}")


def test_required_hardware_is_required_of_the_default_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened = []

    def refuse(name: str, require_hardware: bool = False) -> None:
        opened.append((name, require_hardware))
        raise NoAdapterError("no hardware")

    monkeypatch.setattr("difflogic.devices.open.open_engine", refuse)
    assert main(["bench", "--quick", "--require-hardware"]) == 1
    assert opened == [("gpu", True)]


def test_a_wrong_engine_is_a_failure(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("difflogic.bench.contender.expected_losses", lambda *arguments: [1.0])
    assert main(["bench", *QUICKLY, "--case", "train"]) == 1
    assert "Not measured: train/tiny on reference (wrong): the soft loss" in capsys.readouterr().err


def test_compare(results: Results, tmp_path: Path, said: Said) -> None:
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text(results.to_json())
    results.cases[0].update(line("train/a", 5.0))
    new.write_text(results.to_json())
    rows = [row.split() for row in said("bench", "compare", old, new).out.splitlines()]
    assert rows[1] == ["train/a", "cpu", "10.0", "5", "2.00"]
    assert rows[2] == ["grid/16", "cpu", "1", "1", "1.00", "within", "the", "spread"]
    assert json.loads(said("bench", "compare", old, new, "--json").out)[0]["ratio"] == 2.0


def test_incomparable(results: Results, tmp_path: Path, said: Said) -> None:
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text(results.to_json())
    results.engines["cpu"]["driver"] = "Numba 2"
    new.write_text(results.to_json())
    assert said("bench", "compare", old, new, code=2).err == (
        "Error: The files cannot be compared: the driver of engine cpu is 'Numba 1' in the first and 'Numba 2' in the "
        "second.\n"
    )


@pytest.fixture
def tiny_board(monkeypatch: pytest.MonkeyPatch) -> None:
    config = tiny_config()
    monkeypatch.setattr(presets, "checkerboard", lambda small: config)


@pytest.mark.parametrize("engine", ["gpu", "cpu", "reference"])
def test_profile(engine: str, tiny_board: None, said: Said) -> None:
    out = said("profile", "--engine", engine, "--rounds", "1").out
    assert out.startswith(f"tiny, batch 3, on {engine}: ")
    for word in ("gate_forward", "gate_backward", "adamw", "update", "Limited by: ", "One train step takes"):
        assert word in out


def test_profile_as_json(tiny_board: None, said: Said) -> None:
    data = json.loads(said("profile", "--engine", "reference", "--rounds", "1", "--json").out)
    assert data["engine"] == "reference"
    assert {"forward", "loss", "backward"} <= set(data["phases_ms"])
