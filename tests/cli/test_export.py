"""`difflogic export`: files, names, what it refuses, and what --verify says."""

import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from difflogic.circuits.export.formats import FORMATS
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


@pytest.fixture
def export(circuit: Path, said: Said) -> Said:
    """`export("--format", "c")` exports the circuit to the folder `out` next to it."""
    return partial(said, "export", circuit, "--out", circuit.parent / "out")


def written(circuit: Path) -> set[str]:
    return {path.name for path in (circuit.parent / "out").iterdir()}


def test_formats_are_written_and_verified(circuit: Path, export: Said) -> None:
    needs("bgolly")
    out = export("--format", "golly", "--format", "json", "--verify").out
    assert written(circuit) == {"board_ca.rule", "board_ca.rle", "board.json"}
    assert out.startswith("board.json: 3 gates per cell, channels 0, 2, 3\n")
    assert "golly: verified: bgolly agrees after 100 generations" in out
    assert "; it equals the complete circuit (outputs: 3 by structure)." in out
    assert "json: verified: the file, read back, equals the circuit gate by gate." in out


def test_controller_is_written_in_formats_that_hold_one(circuit: Path, export: Said) -> None:
    circuit.write_text(function_json.to_json(linear_rule()))
    out = export("--format", "all").out
    assert out.startswith("board.json: 55 gates, 28 thresholds; in fixed point 19 bits per number")
    assert "golly: left out. The format golly does not support a controller: it runs the cells of a grid" in out
    assert {"board.h", "board.v", "board.vhd", "board.blif"} <= written(circuit)
    circuit.write_text(circuit.read_text().replace('"left"', "7"))
    assert re.search(r"Error: .*board\.json: actions must be a list of strings", export("--format", "c", code=2).err)


def test_all_leaves_out_formats_that_do_not_fit(circuit: Path, export: Said) -> None:
    circuit.write_text(netlist_json.to_json(replace(published(), visible=8)))
    assert "golly: left out. Golly supports 256 states" in export("--format", "all").out
    assert not [name for name in written(circuit) if name.endswith(".rule")]
    assert "Error: Golly supports 256 states" in export("--format", "golly", code=2).err


def test_channels_the_image_does_not_need_do_not_count_for_golly(circuit: Path, export: Said) -> None:
    """The circuit has eight channels, of which the image needs three."""
    circuit.write_text(netlist_json.to_json(published()))
    assert ": 3 gates per cell" in export("--format", "golly").out
    assert "num_states=9\n" in (circuit.parent / "out" / "board_ca.rule").read_text()


def test_exports_are_named_after_the_run_folder(circuit: Path, said: Said) -> None:
    run = circuit.parent / "my run"
    run.mkdir()
    circuit.rename(run / "circuit.json")
    said("export", run / "circuit.json", "--format", "svg", "--out", run / "out")
    assert [path.name for path in (run / "out").iterdir()] == ["my_run.svg"]


def test_existing_exports_are_not_overwritten(circuit: Path, export: Said) -> None:
    before = circuit.read_text()
    circuit.write_text(before.replace('"periodic": false', '"periodic": true'))
    export("--format", "json")
    circuit.write_text(before)
    error = "board.json exists already: choose another name, or replace it with --force."
    assert error in export("--format", "json", code=2).err
    export("--format", "json", "--force")
    export("--format", "json", "--out", circuit.parent)  # the same content may stay
    error = "Expected a folder for the exported files, got the file"
    assert error in export("--format", "c", "--out", circuit, code=2).err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [([], "Missing option --format: choose c, "), (["--format", "pdf"], "'pdf' is not a format: expected c, ")],
)
def test_wrong_usage_is_refused(export: Said, arguments: list[str], sentence: str) -> None:
    assert sentence in export(*arguments, code=2).err


def test_missing_circuit_is_reported_in_one_sentence(tmp_path: Path, said: Said) -> None:
    assert said("export", tmp_path / "none.json", "--format", "c", code=2).err.startswith("Error: Unknown circuit ")


def test_missing_checker_fails_verification(export: Said, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    error = export("--format", "vhdl", "--verify", code=1).err
    assert error == "vhdl: NOT VERIFIED. ghdl is not installed: install the package ghdl-mcode on Debian or Ubuntu.\n"
