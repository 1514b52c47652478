"""`--placement`, `--max-memory`, and what is printed where the engine is found by measuring."""

import json
from pathlib import Path

import pytest

from difflogic.devices import choose, race
from difflogic.devices.open import Placement, open_engine
from difflogic.devices.race import Candidate
from tests.cli.conftest import Call

AUTO = None


@pytest.fixture
def rivals(monkeypatch: pytest.MonkeyPatch) -> None:
    """auto finds two engines; time stands still, so that the first one stays."""

    def place_run(*given: object) -> Placement:
        candidate = Candidate("the CPU engine", lambda: open_engine("cpu"))
        return Placement(open_engine("reference"), "to be measured", candidate=candidate)

    open_engine("cpu")  # where it must be compiled, that is told here
    monkeypatch.setattr(race, "clock", lambda: 0.0)
    monkeypatch.setattr(choose, "place_run", place_run)


REASON = "auto measured 0 ms per epoch on reference, 0 ms on cpu"


def test_engine_benchmark_is_reported_in_lines(call: Call, rivals: None) -> None:
    result = call("--log-interval", 1, "--out", "here", engine=AUTO)
    assert (result.code, result.errors) == (0, "")
    lines = result.out.splitlines()
    assert lines[1].startswith("Engine reference: NumPy (")
    assert lines[1].endswith("; to be measured")
    placed = next(number for number, line in enumerate(lines) if line.endswith(REASON))
    assert lines[placed].startswith("Engine reference: NumPy (")
    assert lines[placed - 1].startswith("Epoch    8:")
    kept = json.loads(Path("here/manifest.json").read_text())
    assert kept["engine"]["why"] == REASON
    assert [trial["engine"]["engine"] for trial in kept["measured"]] == ["reference", "cpu"]


def test_engine_benchmark_is_reported_in_json(call: Call, rivals: None) -> None:
    result = call("--json", "--out", "here", engine=AUTO)
    events = [json.loads(line) for line in result.out.splitlines()]
    (placed,) = [event for event in events if event["event"] == "placed"]
    assert placed["why"] == REASON
    assert placed["engine"]["engine"] == "reference"


def test_resumed_run_is_not_measured_again(call: Call, rivals: None) -> None:
    call("--epochs", 5, "--out", "here", engine=AUTO)
    result = call("--resume", "here", "--epochs", 12, "--json", engine=AUTO)
    assert result.code == 0
    assert "placed" not in [json.loads(line)["event"] for line in result.out.splitlines()]


def test_placement_cpu_and_sticky_skip_the_benchmark(call: Call, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("DIFFLOGIC_CACHE_DIR", str(tmp_path / "cache"))
    first = call("--placement", "cpu", "--epochs", 1, "--out", "one", engine=AUTO)
    assert "; --placement cpu was given\n" in first.out
    call("--epochs", 1, "--out", "two", engine="reference")
    last = call("--placement", "sticky", "--epochs", 1, "--out", "three", engine=AUTO)
    assert "Engine reference" in last.out
    assert "; the last run of this shape used it\n" in last.out
    assert json.loads(Path("three/manifest.json").read_text())["engine"]["engine"] == "reference"


@pytest.mark.parametrize(
    ("arguments", "engine", "text"),
    [
        ("--placement gpu", "cpu", "--placement requires --engine auto, got --engine cpu: give only one"),
        ("--placement auto --gpu", AUTO, "--placement requires --engine auto, got --engine gpu"),
        ("--placement sticky --resume here", AUTO, "--placement cannot be used with --resume: omit it"),
        ("--placement cpu --require-hardware", AUTO, "--placement cpu cannot be combined with"),
        ("--placement best", AUTO, "'best' is not one of 'auto', 'gpu', 'cpu', 'sticky'"),
        ("--max-memory 10", "reference", "only limits the GPU engine, but the reference engine is selected"),
    ],
)
def test_contradicting_options_are_refused(arguments: str, engine: str | None, text: str, call: Call) -> None:
    result = call(*arguments.split(), engine=engine)
    assert result.code == 2
    assert text in result.errors


@pytest.mark.exhaustive
def test_max_memory_limits_the_plan(call: Call) -> None:
    result = call("--epochs", 1, "--max-memory", 0.001, engine="gpu")
    assert result.code == 1
    assert "The smallest plan needs" in result.errors
    assert "allow at least" in result.errors
