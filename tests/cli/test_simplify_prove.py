"""`difflogic simplify` and `difflogic prove`: what they print, write and end with."""

import json
from pathlib import Path

import numpy as np
import pytest

from difflogic.circuits.synthesis import resubstitution
from difflogic.circuits.synthesis.simplify import FUNCTIONAL
from difflogic.model import netlist_json
from difflogic.model.cell_netlist import CellNetlist
from tests.cli.conftest import Call, Said
from tests.random_circuits import random_circuit


@pytest.fixture(autouse=True)
def short_walks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resubstitution, "WORK", 0)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "random.json"
    netlist = CellNetlist.from_circuit(random_circuit(np.random.default_rng(6)))
    path.write_text(netlist_json.to_json(netlist))
    return path


def test_run_is_simplified_and_proved(run: Path, said: Said) -> None:
    lines = said("simplify", run, "-o", "small.json").out.splitlines()
    assert lines[0].startswith("here: ")
    assert lines[0].endswith(" gates per cell")
    assert lines[1].split()[:3] == ["step", "gates", "before"]
    steps = ["constants, wires and inverters folded", "dead gates removed", "unseen channels removed"]
    assert [line.split("  ")[0] for line in lines[2:6]] == [*steps, "structural hashing"]
    assert lines[-7].startswith("Proved equal in its visible channels: ")
    assert lines[-5:-3] == ["Written: small.json", "Next:"]
    assert lines[-1].split("    ")[0] == "  difflogic export small.json --format c"
    lines = said("prove", run, "small.json", "--judge", "network", "--judge", "difflogic").out.splitlines()
    verdicts = [line.split()[:2] for line in lines[:3]]
    assert verdicts == [["checker", "verdict"], ["network", "equal"], ["difflogic", "equal"]]
    assert lines[-1] == "Equal: the two compute the same next state from every neighbourhood."


def test_high_effort_makes_more_walks(said: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    walks: list[int] = []
    walk = resubstitution._State.walk
    monkeypatch.setattr(resubstitution, "WORK", 50_000)
    monkeypatch.setattr(resubstitution, "WALKS", 4)
    monkeypatch.setattr(resubstitution._State, "walk", lambda self, moves: walks.append(moves) or walk(self, moves))
    assert json.loads(said("simplify", "B2/S", "--json").out)["equal"]
    few = len(walks)
    assert json.loads(said("simplify", "B2/S", "--json", "--effort", "high").out)["equal"]
    assert len(walks) - few >= few + 36


@pytest.mark.parametrize("options", [[], ["--json"], ["--task"]])
def test_ctrl_c_saves_the_smallest_circuit(run: Path, options: list[str], said: Said, monkeypatch) -> None:
    def interrupt(netlist: CellNetlist) -> CellNetlist:
        raise KeyboardInterrupt

    monkeypatch.setitem(FUNCTIONAL, "resubstitution", interrupt)
    printed = said("simplify", run, "-o", "small.json", *options, code=130)
    if "--json" in options:
        report = json.loads(printed.out)
        assert (report["stopped"], report["equal"]) == (True, True)
    else:
        assert "Stopped by Ctrl-C: this is the smallest circuit found so far.\nProved equal" in printed.out
        assert printed.err.splitlines()[-2].endswith(", stopped by Ctrl-C"), "nothing more is begun"
    said("prove", run, "small.json", "--judge", "difflogic")


def test_task_option_prunes_the_circuit(run: Path, said: Said) -> None:
    report = json.loads(said("simplify", run, "--task", "--json", "-o", "small.json").out)
    assert report["task_only"]["rollouts"] > 0
    assert report["equal"] is True
    assert report["gates"]["after"] <= min(step["gates"][1] for step in report["steps"])
    assert list(netlist_json.load(Path("small.json")).origin) == report["channels"]


def test_task_needs_a_run(file: Path, said: Said) -> None:
    error = said("simplify", file, "--task", code=2).err
    assert error == "Error: --task needs a run folder, which contains its task, got circuit.json.\n"


def test_different_circuits_are_reported(file: Path, tmp_path: Path, said: Said) -> None:
    data = json.loads(file.read_text())
    other = tmp_path / "other.json"
    other.write_text(json.dumps(data | {"outputs": data["outputs"][::-1], "periodic": True}))
    out = said("prove", file, other, "--judge", "difflogic", code=1).out
    assert "DIFFERENT" in out
    assert "Counterexample, evaluated in both: inputs that are 1: " in out
    assert "Note: only one of the two is periodic" in out
    assert out.endswith("Different: the two do not compute the same next state from every neighbourhood.\n")
    report = json.loads(said("prove", file, other, "--judge", "difflogic", "--json", code=1).out)
    assert (report["equal"], report["same_boundary"]) == (False, False)
    assert report["verdicts"][0]["counterexample"]["outputs"]


def test_missing_checkers_leave_the_result_open(file: Path, said: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    out = said("prove", file, file, "--judge", "yosys", code=1).out
    assert "yosys is not installed: install the package yosys on Debian or Ubuntu; run" in out
    assert out.endswith("Undecided: no checker could prove it.\n")


@pytest.mark.parametrize("command", [["simplify"], ["prove", "absent.json"]])
def test_bad_files_are_reported_in_one_sentence(command: list[str], tmp_path: Path, said: Said) -> None:
    path = tmp_path / "bad.json"
    path.write_text('{"format": "difflogic-circuit"')
    errors = said(*command[:1], path, *command[1:], code=2).err
    assert errors.startswith(f"Error: {path}: The file is not valid JSON: ")
    assert errors.count("\n") == 1


def test_from_start_allows_fewer_gates(difflogic: Call) -> None:
    train = ("train", "tiny", "--epochs", 2, "--engine", "reference", "--out")
    assert difflogic(*train, "r", "--set", 'task.start="seed"').code == 0
    found = difflogic("simplify", "r", "--from-start", "--task", "-o", "small.json")
    assert found.code == 0
    assert "Proved equal only from its own initial state on: " in found.out
    assert "... resubstitution on reachable states: " in found.errors
    assert netlist_json.load(Path("small.json")).scenario.start == "seed"
    report = json.loads(difflogic("simplify", "r", "--from-start", "--json").out)
    assert report["from_start"]["equal"] is True
    assert report["gates"]["once"] <= report["gates"]["after"]
    assert report["lut3"] <= report["gates"]["after"]
    found = difflogic("simplify", "r", "--from-start", "--size", "5x4")
    assert "only from its own initial state on: on 5x4 cells by following both until step " in found.out
    refused = difflogic("simplify", "r", "--size", "5x4")
    assert (refused.code, refused.errors.count("Error: --size requires --from-start")) == (2, 1)
    assert difflogic(*train, "noise").code == 0
    refused = difflogic("simplify", "noise", "--from-start")
    error = "Error: --from-start needs a circuit with a fixed initial state, got a random initial state."
    assert (refused.code, refused.errors.splitlines()[-1]) == (2, error)


def test_rule_is_accepted_as_circuit(said: Said, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = said("simplify", "b63/s23", "-o", "highlife.json")
    assert "The rule B36/S23: built from its table, without training." in done.err
    assert done.out.startswith("B36/S23: 33 gates per cell")
    assert "Proved equal in its visible channels: outputs: 1 by exhaustion" in done.out
    assert said("prove", "highlife.json", "B36/S23", "--judge", "difflogic").out.endswith("from every neighbourhood.\n")
    assert "DIFFERENT" in said("prove", "highlife.json", "B3/S23", "--judge", "difflogic", code=1).out
    assert said("show", "W110").out.startswith("W110: cell.")
    assert "made/B36S23.v" in said("export", "B36/S23", "--format", "verilog", "--out", "made").out
