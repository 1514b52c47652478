"""`difflogic export`: files, names, what it refuses, and what --verify says."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from difflogic.circuits.export.formats import FORMATS
from difflogic.cli.main import main
from difflogic.model import function_json, netlist_json
from tests.cli.conftest import Said
from tests.controllers import linear_rule
from tests.export_cases import published, published_small
from tests.programs import needs


def test_help_lists_every_format(said: Said) -> None:
    listed = re.findall(r"^  ([a-z0-9, ]+?)  +\w", said("export", "--help").out, flags=re.MULTILINE)
    assert {name for line in listed for name in line.split(", ")} >= set(FORMATS)


@pytest.fixture
def circuit(tmp_path: Path) -> Path:
    path = tmp_path / "board.json"
    path.write_text(netlist_json.to_json(published_small()))
    return path


def export(circuit: Path, *arguments: str) -> int:
    return main(["export", str(circuit), "--out", str(circuit.parent / "out"), *arguments])


def test_formats_are_written_and_verified(circuit: Path, capsys: pytest.CaptureFixture[str]) -> None:
    needs("bgolly")
    assert export(circuit, "--format", "golly", "--format", "json", "--verify") == 0
    assert {path.name for path in (circuit.parent / "out").iterdir()} == {"board_ca.rule", "board_ca.rle", "board.json"}
    said = capsys.readouterr().out
    assert said.startswith("board.json: 3 gates per cell, channels 0, 2, 3\n")
    assert "golly: verified: bgolly agrees after 100 generations" in said
    assert "; it equals the complete circuit (outputs: 3 by structure)." in said
    assert "json: verified: the file, read back, equals the circuit gate by gate." in said


def test_controller_is_written_in_formats_that_hold_one(circuit: Path, capsys: pytest.CaptureFixture[str]) -> None:
    circuit.write_text(function_json.to_json(linear_rule()))
    assert export(circuit, "--format", "all") == 0
    said = capsys.readouterr().out
    assert said.startswith("board.json: 55 gates, 28 thresholds; in fixed point 19 bits per number")
    assert "golly: left out. The format golly does not support a controller: it runs the cells of a grid" in said
    assert {"board.h", "board.v", "board.vhd", "board.blif"} <= {
        path.name for path in (circuit.parent / "out").iterdir()
    }
    circuit.write_text(circuit.read_text().replace('"left"', "7"))
    assert export(circuit, "--format", "c") == 2
    assert re.search(r"Error: .*board\.json: actions must be a list of texts", capsys.readouterr().err)


def test_all_leaves_out_formats_that_do_not_fit(circuit: Path, capsys: pytest.CaptureFixture[str]) -> None:
    circuit.write_text(netlist_json.to_json(replace(published(), visible=8)))
    assert export(circuit, "--format", "all") == 0
    assert "golly: left out. Golly supports 256 states" in capsys.readouterr().out
    assert not list((circuit.parent / "out").glob("*.rule"))
    assert export(circuit, "--format", "golly") == 2
    assert "Error: Golly supports 256 states" in capsys.readouterr().err


def test_channels_the_image_does_not_need_do_not_count_for_golly(circuit: Path, capsys) -> None:
    """Return a circuit of eight channels, of which the image needs three."""
    circuit.write_text(netlist_json.to_json(published()))
    assert export(circuit, "--format", "golly") == 0
    assert "num_states=9\n" in (circuit.parent / "out" / "board_ca.rule").read_text()
    assert ": 3 gates per cell" in capsys.readouterr().out


def test_exports_are_named_after_the_run_folder(circuit: Path) -> None:
    run = circuit.parent / "my run"
    run.mkdir()
    circuit.rename(run / "circuit.json")
    assert main(["export", str(run / "circuit.json"), "--format", "svg", "--out", str(run / "out")]) == 0
    assert [path.name for path in (run / "out").iterdir()] == ["my_run.svg"]


def test_existing_exports_are_not_overwritten(circuit: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(circuit.parent)
    before = circuit.read_text()
    circuit.write_text(before.replace('"periodic": false', '"periodic": true'))
    assert export(circuit, "--format", "json") == 0
    circuit.write_text(before)
    assert export(circuit, "--format", "json") == 2
    assert "board.json exists already: choose another name, or replace it with --force." in capsys.readouterr().err
    assert export(circuit, "--format", "json", "--force") == 0
    assert main(["export", str(circuit), "--format", "json", "--out", folder]) == 0, "the same content may stay"
    assert main(["export", str(circuit), "--format", "c", "--out", str(circuit)]) == 2
    assert "Expected a folder for the exported files, got the file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [([], "Missing option --format: choose c, "), (["--format", "pdf"], "'pdf' is not a format: expected c, ")],
)
def test_wrong_usage_is_refused(circuit: Path, arguments: list[str], sentence: str, capsys) -> None:
    assert export(circuit, *arguments) == 2
    assert sentence in capsys.readouterr().err


def test_missing_circuit_is_reported_in_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(tmp_path / "none.json"), "--format", "c"]) == 2
    assert capsys.readouterr().err.startswith("Error: Unknown circuit ")


def test_missing_checker_fails_verification(circuit: Path, capsys, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert export(circuit, "--format", "vhdl", "--verify") == 1
    error = capsys.readouterr().err
    assert error == "vhdl: NOT VERIFIED. ghdl is not installed: install the package ghdl-mcode on Debian or Ubuntu.\n"
