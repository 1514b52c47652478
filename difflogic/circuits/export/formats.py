"""The table of formats: what each is for, and which programs judge it.

What is written is the circuit after the structural passes of simplification, so that no format carries pass-throughs,
constants, equal gates or channels that the picture never depends on, and gates are counted as there. circuit.json alone
keeps every gate: it is the run's own netlist, with the numbers that its gates have in the run folder.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from types import ModuleType

from difflogic.circuits.export.text import Files, identifier
from difflogic.circuits.synthesis.prove import prove
from difflogic.circuits.synthesis.simplify import structural
from difflogic.errors import ExportError
from difflogic.model.cell_netlist import CellNetlist


@dataclass(frozen=True)
class Format:
    """`module` has `export(netlist, name) -> Files`, and `verify(netlist, name, files)`, which proves them."""

    module: str
    summary: str
    programs: tuple[str, ...] = ()
    """What `verify` asks."""
    every_gate: bool = False
    """Whether it keeps the netlist as it is."""


_HARDWARE = ("iverilog", "vvp", "yosys", "berkeley-abc")

FORMATS = {
    "c": Format("c", "a C99 header, 64 cells per word, and a demo", ("gcc",)),
    "verilog": Format("verilog", "a cell, a grid and a self-checking test bench", _HARDWARE),
    "vhdl": Format("vhdl", "the same in VHDL-2008", ("ghdl",)),
    "blif": Format("blif", "for logic synthesis", ("berkeley-abc",)),
    "aiger": Format("aiger", "binary AIGER, for ABC and model checkers", ("berkeley-abc",)),
    "dot": Format("dot", "a diagram for Graphviz", ("dot",)),
    "svg": Format("svg", "a diagram"),
    "digitaljs": Format("digitaljs", "for the DigitalJS simulator in the browser"),
    "golly": Format("golly", "a rule and a pattern for Golly", ("bgolly",)),
    "wgsl": Format("wgsl", "a WebGPU compute shader, 32 cells per word"),
    "html": Format("html", "one page on which the automaton lives, without a network", ("chromium",)),
    "numpy": Format("python", "a Python module that needs NumPy only"),
    "json": Format("circuit_json", "circuit.json, as in a run folder: every gate", every_gate=True),
}


def export(netlist: CellNetlist, name: str, form: str) -> Files:
    """The files of a format, the same bytes for the same circuit. `name` may be any text.

    Raises CircuitError where the format cannot hold the circuit.
    """
    files: Files = _module(form).export(written(netlist, form), identifier(name))
    return files


def _module(form: str) -> ModuleType:
    """Imported when it is asked for: a proof brings what no other format needs."""
    return importlib.import_module(f"difflogic.circuits.export.{FORMATS[form].module}")


def written(netlist: CellNetlist, form: str) -> CellNetlist:
    """What a format holds of a netlist."""
    return netlist if FORMATS[form].every_gate else structural(netlist)


def verify(netlist: CellNetlist, name: str, form: str, files: Files) -> list[str]:
    """What was proved of `files`, a sentence each. Raises ToolError where something differs or a program is missing."""
    held = written(netlist, form)
    proved: list[str] = _module(form).verify(held, identifier(name), files)
    if held is netlist:
        return proved
    (verdict,) = prove(netlist, held, ["difflogic"])
    if not verdict.equal:
        raise ExportError(f"The circuit without its pass-throughs is not proved equal to what it was: {verdict.how}.")
    return [*proved, f"that is the whole circuit ({verdict.how})"]
