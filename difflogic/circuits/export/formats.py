"""Table of export formats and of the programs that verify exported files.

Exported files contain the circuit after structural simplification, without pass-throughs, constants, duplicate gates
and channels that affect no visible channel. Only circuit.json contains every gate, numbered as in the run folder.
"""

import importlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import overload

from difflogic.circuits.export.text import Files, identifier, text_of, write
from difflogic.circuits.synthesis import function, simplify
from difflogic.circuits.synthesis.prove import prove
from difflogic.errors import CircuitError, ExportError
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.circuit import Circuit
from difflogic.model.controller import Controller
from difflogic.model.function_netlist import FunctionNetlist
from difflogic.model.grid import Grid

Exported = CellNetlist | FunctionNetlist | Grid


@dataclass(frozen=True)
class Format:
    """Export format; `module` is the Python module that defines its `export` and `verify`."""

    module: str
    programs: tuple[str, ...] = ()
    """External programs that `verify` runs."""
    every_gate: bool = False
    """True if the exported file contains all gates of the netlist, including dead ones."""
    framed: bool = False
    """True if functions are exported by the module of the same name in the package `functions`."""
    cells_only: str = ""
    """Reason why the format supports only cells, not functions; empty if it supports functions."""
    lives: str = ""
    """Reason why controllers are the only functions that the format supports; empty if there is no such limit."""
    grid: str = ""
    """Module that exports a complete grid in this format; empty if unsupported."""


_READ_AS_CELL = "its files can be verified only for the cell of an automaton"
_NO_LIFE = "its page runs an automaton or a controller; use svg to draw a function"
_NO_GRID = "it runs the cells of a grid; for an automaton that acts, export the circuit.json in its run folder"
_HARDWARE = ("iverilog", "vvp", "yosys", "berkeley-abc")

FORMATS = {  # `config.choices.EXPORTS` has a description of each
    "c": Format("c", ("gcc",), framed=True),
    "verilog": Format("verilog", _HARDWARE, framed=True, grid="automaton"),
    "vhdl": Format("vhdl", ("ghdl",), framed=True),
    "blif": Format("blif", ("berkeley-abc",)),
    "aiger": Format("aiger", ("berkeley-abc",), grid="aiger"),
    "svg": Format("svg"),
    "digitaljs": Format("digitaljs", cells_only=_READ_AS_CELL),
    "golly": Format("golly", ("bgolly",), cells_only=_NO_GRID),
    "wgsl": Format("wgsl", cells_only=_NO_GRID),
    "html": Format("html", ("chromium",), framed=True, lives=_NO_LIFE),
    "numpy": Format("python", framed=True),
    "json": Format("circuit_json", every_gate=True),
}


SHOWN = {"html": "live.html", "svg": "circuit.svg"}
"""Mapping from visual formats to the names of their files in a run or job folder."""


def export(netlist: Exported, name: str, form: str, out: Path | str | None = None) -> Files:
    """Export a circuit in the format `form`, write the files to the folder `out` unless None, and return them.

        formats.export(run.netlist, "board", "c", "exports")

    Equal circuits give equal bytes. `name` may be any text; file names contain its `identifier`. Raises CircuitError
    if the format cannot represent the circuit, and UsageError if a file in `out` exists with different contents.
    """
    files: Files = _module(netlist, form).export(written(netlist, form), identifier(name))
    if out is not None:
        write(files, Path(out))
    return files


def exports(netlist: Exported, name: str, forms: Iterable[str] = FORMATS) -> tuple[dict[str, Files], dict[str, str]]:
    """Return the exported files by format, and the reason for each format that cannot represent the circuit."""
    files: dict[str, Files] = {}
    reasons: dict[str, str] = {}
    for form in forms:
        try:
            files[form] = export(netlist, name, form)
        except CircuitError as error:
            reasons[form] = str(error)
    return files, reasons


def page(circuit: object) -> str | None:
    """Return the interactive HTML page of an automaton or a controller; None for other objects."""
    if isinstance(circuit, Circuit):
        circuit = CellNetlist.from_circuit(circuit) if circuit.perceive else None
    if not isinstance(circuit, CellNetlist | Controller):
        return None
    return text_of(export(circuit, "circuit", "html"), "circuit.html")


def _module(netlist: Exported, form: str) -> ModuleType:
    """Import and return a format's module for this kind of circuit. Raises CircuitError if there is none."""
    row = FORMATS[form]
    module = row.module
    if isinstance(netlist, FunctionNetlist):
        if reason := row.cells_only or ("" if isinstance(netlist, Controller) else row.lives):
            raise CircuitError(f"The format {form} does not support a {netlist.kind}: {reason}.")
        module = f"functions.{row.module}" if row.framed else row.module
    if isinstance(netlist, Grid):
        if not row.grid:
            able = ", ".join(name for name, other in FORMATS.items() if other.grid)
            raise CircuitError(f"The format {form} does not support --grid: use {able}.")
        module = row.grid
    return importlib.import_module(f"difflogic.circuits.export.{module}")


@overload
def written(netlist: CellNetlist, form: str) -> CellNetlist: ...


@overload
def written(netlist: FunctionNetlist, form: str) -> FunctionNetlist: ...


@overload
def written(netlist: Grid, form: str) -> Grid: ...


def written(netlist: Exported, form: str) -> Exported:
    """Return the netlist that files of a format contain: structurally simplified unless `every_gate` is set."""
    if FORMATS[form].every_gate:
        return netlist
    if isinstance(netlist, Grid):
        return replace(netlist, cell=simplify.structural(netlist.cell))
    return function.structural(netlist) if isinstance(netlist, FunctionNetlist) else simplify.structural(netlist)


def verify(netlist: Exported, name: str, form: str, files: Files) -> list[str]:
    """Verify exported files and return one sentence per successful check. Raises ExportError or ToolError."""
    lean = written(netlist, form)
    proved: list[str] = _module(netlist, form).verify(lean, identifier(name), files)
    if lean is netlist:
        return proved
    if isinstance(netlist, FunctionNetlist) and isinstance(lean, FunctionNetlist):
        [verdict] = function.prove(netlist, lean, ["difflogic"])
    else:
        one, other = (circuit.cell if isinstance(circuit, Grid) else circuit for circuit in (netlist, lean))
        [verdict] = prove(one, other, ["difflogic"])
    if not verdict.equal:
        raise ExportError(f"The circuit without its pass-throughs was not proved equal to the original: {verdict.how}.")
    return [*proved, f"it equals the complete circuit ({verdict.how})"]
