"""The table of formats: what each is for, and which programs judge it."""

from __future__ import annotations

import importlib
from dataclasses import dataclass

from difflogic.circuits.export.text import Files, identifier
from difflogic.netlist import Netlist


@dataclass(frozen=True)
class Format:
    """`module` has `export(netlist, name) -> Files`; the module of that name in `proofs` has `verify`."""

    module: str
    summary: str
    programs: tuple[str, ...] = ()
    """What `verify` asks."""


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
    "json": Format("circuit_json", "circuit.json, as in a run folder"),
}


def export(netlist: Netlist, name: str, form: str) -> Files:
    """The files of a format, the same bytes for the same circuit. `name` may be any text.

    Raises CircuitError where the format cannot hold the circuit.
    """
    files: Files = importlib.import_module(f"difflogic.circuits.export.{FORMATS[form].module}").export(
        netlist, identifier(name)
    )
    return files


def verify(netlist: Netlist, name: str, form: str, files: Files) -> list[str]:
    """What was proved of `files`, a sentence each. Raises ToolError where something differs or a program is missing."""
    proved: list[str] = importlib.import_module(f"difflogic.circuits.export.proofs.{FORMATS[form].module}").verify(
        netlist, identifier(name), files
    )
    return proved
