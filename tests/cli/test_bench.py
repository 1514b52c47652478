"""`difflogic bench`: tables, files and their comparison, one training kernel by kernel, and gradients."""

import json
from pathlib import Path

import numpy as np
import pytest

from difflogic.bench import cases, runner
from difflogic.bench.contender import Contender
from difflogic.bench.results import Results
from difflogic.devices import check_gradients
from difflogic.devices.check_gradients import Subject
from difflogic.errors import NoAdapterError
from difflogic.model.circuit import ArraysByNetwork
from tests.bench.made_up import TINY, line, make_results
from tests.cli.conftest import Call, Said, complaints
from tests.sampled import sampled

QUICKLY = ("--quick", "--rounds", "1", "--engine", "reference")
"""On the engine that is everywhere."""


@pytest.fixture(autouse=True)
def tiny_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases, "all_cases", lambda: TINY)
    monkeypatch.setattr("difflogic.bench.machine.COPIED_BYTES", 1 << 16)


def test_list_prints_the_cases(said: Said) -> None:
    out = said("bench", "--list").out
    assert out.splitlines()[0].split() == ["case", "timed", "work", "million", "gate", "evaluations"]
    assert [row.split()[0] for row in out.splitlines()[1:]] == [case.name for case in TINY]


def test_bench_prints_a_table(said: Said) -> None:
    captured = said("bench", *QUICKLY, "--engine", "cpu")
    assert "case        engine     median ms" in captured.out
    assert "train/tiny on cpu is limited by: kernel" in captured.out
    assert "gate_backward" in captured.out
    assert "reference: NumPy" in captured.out
    assert "... train/tiny on cpu: train step" in captured.err


def test_json_is_the_results_file(said: Said, tmp_path: Path) -> None:
    out = tmp_path / "a.json"
    chosen = ("--case", "batch", "--case", "train", "--engine", "cpu")
    captured = said("bench", *QUICKLY, *chosen, "--json", "--out", out)
    assert complaints(captured.err) == []
    assert captured.out == out.read_text()
    found = [(each["case"], each["engine"]) for each in json.loads(captured.out)["cases"]]
    assert found == [("train/tiny", "reference"), ("train/tiny", "cpu"), ("batch/3", "cpu"), ("batch/12", "cpu")]


def test_interrupted_run_writes_its_rows(said: Said, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(contenders: list[Contender], effort: runner.Effort) -> None:
        take_turns(contenders, effort)
        if contenders[0].case.name == "hard/tiny":
            raise KeyboardInterrupt

    take_turns = runner._take_turns
    monkeypatch.setattr(runner, "_take_turns", stop)
    chosen = [part for name in ("train/tiny", "hard", "batch") for part in ("--case", name)]
    errors = said("bench", "--rounds", "1", *chosen, "--engine", "cpu", "--out", tmp_path / "a.json", code=130).err
    assert "... 4 cases on 1 engines: " in errors
    assert "... train/tiny on cpu: median " in errors
    assert "Stopped before the end: 2 measurements missing." in errors
    rows = Results.load(tmp_path / "a.json").cases
    assert [(line["case"], "profile" in line) for line in rows] == [("train/tiny", True), ("hard/tiny", False)]


def test_require_hardware_applies_to_default_engines(monkeypatch: pytest.MonkeyPatch, said: Said) -> None:
    opened = []

    def refuse(name: str, require_hardware: bool = False) -> None:
        opened.append((name, require_hardware))
        raise NoAdapterError("no hardware")

    monkeypatch.setattr("difflogic.devices.open.open_engine", refuse)
    for number, engine in enumerate(((), ("--engine", "cpu")), 1):
        said("bench", "--quick", "--require-hardware", *engine, code=1)
        assert opened == [("gpu", True)] * number


def test_wrong_engine_fails(monkeypatch: pytest.MonkeyPatch, said: Said) -> None:
    monkeypatch.setattr("difflogic.bench.contender.expected_losses", lambda *arguments: [1.0])
    errors = said("bench", *QUICKLY, "--case", "train", code=1).err
    assert "Not measured: train/tiny on reference (wrong): the soft loss" in errors


def test_compare_prints_ratios(tmp_path: Path, said: Said) -> None:
    results = make_results()
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text(results.to_json())
    results.cases[0].update(line("train/a", 5.0))
    new.write_text(results.to_json())
    rows = [row.split() for row in said("bench", "--compare", old, new).out.splitlines()]
    assert rows[1] == ["train/a", "cpu", "10", "5", "2.00"]
    assert rows[2] == ["grid/16", "cpu", "1", "1", "1.00", "within", "the", "spread"]
    assert json.loads(said("bench", "--compare", old, new, "--json").out)[0]["ratio"] == 2.0


@pytest.mark.parametrize("engine", sampled(["gpu", "cpu"], ["cpu"]))
def test_preset_is_measured_kernel_by_kernel(engine: str, call: Call, said: Said) -> None:
    out = said("bench", "--batch", "3", "--engine", engine, "--quick", "--rounds", "1").out
    assert f"train/tiny on {engine + ' (software)' * (engine == 'gpu')} is limited by: " in out
    for word in ("gate_forward", "gate_backward", "adamw"):
        assert f"\n{word} " in out


def test_run_is_measured_without_the_reference(run: Path, said: Said) -> None:
    lines = json.loads(said("bench", run, "--quick", "--rounds", "1", "--json").out)["cases"]
    assert {line["engine"] for line in lines} == {"gpu", "cpu"}


def test_gradients_of_a_run_agree(run: Path, said: Said) -> None:
    lines = said("bench", run, "--gradients", "--engine", "cpu").out.splitlines()
    assert lines[0] == "tiny after epoch 3: 54 gates, 3 steps, batch 3"
    assert lines[1].startswith("cpu: ")
    assert lines[2].startswith("gradients of")
    assert sum(line.endswith("ok") for line in lines) == 6
    assert lines[-1] == "All agree."
    file = run / "checkpoint.safetensors"
    report = json.loads(said("bench", file, "--gradients", "--engine", "cpu", "--batch", "1", "--json").out)
    assert report["passed"]
    assert report["epoch"] == 3
    assert set(report["pairs"][0]) == {"one", "other", "layer", "error", "allowed", "passed"}
    assert " fits.\n" in said("bench", run, "--gradients", "--engine", "cpu", "--batch", "2000000000", code=1).err


def test_gradients_of_a_wrong_engine_fail(call: Call, said: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(subject: Subject) -> ArraysByNetwork:
        logits = subject.circuit.logits
        return {network: [np.full_like(layer, np.inf) for layer in logits[network]] for network in logits}

    sources = check_gradients.GradientSources({"abacus": wrong}, {}, {"gpu": "It is not here."})
    monkeypatch.setattr(check_gradients, "find", lambda *_: sources)
    out = said("bench", "--gradients", code=1).out
    assert out.startswith("tiny after epoch 0: ")
    assert out.count("FAIL") == 3
    assert "Not compared: gpu. It is not here.\n" in out
    assert "NOT ALL AGREE" in out
    report = json.loads(said("bench", "--gradients", "--json", code=1).out)
    assert not report["passed"]
    assert [pair["error"] for pair in report["pairs"] if not pair["passed"]] == [None] * 3


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("--case no/such", "Error: Unknown case 'no/such': expected one of train/tiny"),
        ("--engine abacus", "Unknown engine 'abacus'"),
        ("--gradients --engine abacus", "Unknown engine 'abacus'"),
        ("--gradients --list", "cannot be used together: give one of them"),
        ("--gradients --out a.json", "--gradients does not measure times: omit --out."),
        ("lizard --case train", "--case cannot be used with PRESET"),
        ("lizard --config a.toml", "a.toml"),
    ],
)
def test_bad_input_is_refused(arguments: str, text: str, said: Said) -> None:
    assert text in said("bench", *arguments.split(), code=2).err
