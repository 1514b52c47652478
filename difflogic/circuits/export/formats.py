"""The table of formats: what each is for, and which programs check it.

What is written is the circuit after the structural passes of simplification, so that no format carries pass-throughs,
constants, equal gates or channels that the picture never depends on, and gates are counted as there. circuit.json alone
keeps every gate: it is the run's own netlist, with the numbers that its gates have in the run folder.
"""

import importlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import overload

from difflogic.circuits.export.text import Files, identifier, text_of, write
from difflogic.circuits.synthesis import function, simplify
from difflogic.circuits.synthesis.prove import Equivalence, prove
from difflogic.errors import CircuitError, ExportError
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.circuit import Circuit
from difflogic.model.controller import Controller
from difflogic.model.function_netlist import FunctionNetlist
from difflogic.model.grid import Grid

Exported = CellNetlist | FunctionNetlist | Grid


@dataclass(frozen=True)
class Format:
    """`module` has `export(netlist, name) -> Files`, and `verify(netlist, name, files)`, which proves them."""

    module: str
    programs: tuple[str, ...] = ()
    """What `verify` asks."""
    every_gate: bool = False
    """Whether it keeps the netlist as it is."""
    framed: bool = False
    """Whether functions have a module of their own, of the same name in `functions`."""
    cells_only: str = ""
    """Why it cannot hold a function."""
    lives: str = ""
    """Why it holds cells and controllers alone."""
    grid: str = ""
    """The module that holds a whole grid, where it can: as `module`."""


_READ_AS_CELL = "its files are read back as the cell of an automaton, so that nothing else could be verified"
_NO_LIFE = "its page shows an automaton or an agent at work: svg draws a function"
_NO_GRID = (
    "it moves the cells of a grid, and this has none; of an automaton that acts, export the circuit.json that "
    "stands in its run folder"
)
_HARDWARE = ("iverilog", "vvp", "yosys", "berkeley-abc")

FORMATS = {  # what each is for: `config.choices.EXPORTS`
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
"""Formats that are looked at, and what their files are called beside what they show."""


def export(netlist: Exported, name: str, form: str, out: Path | str | None = None) -> Files:
    """The files of a format, the same bytes for the same circuit, and written to the folder `out` where one is given.

        formats.export(run.netlist, "board", "c", "exports")

    `name` may be any text. Raises CircuitError where the format cannot hold the circuit, UsageError where a file with
    another content is in `out`.
    """
    files: Files = _module(netlist, form).export(written(netlist, form), identifier(name))
    if out is not None:
        write(files, Path(out))
    return files


def exports(netlist: Exported, name: str, forms: Iterable[str] = FORMATS) -> tuple[dict[str, Files], dict[str, str]]:
    """The files by format, and for each format that cannot hold the circuit the reason."""
    made: dict[str, Files] = {}
    left_out: dict[str, str] = {}
    for form in forms:
        try:
            made[form] = export(netlist, name, form)
        except CircuitError as error:
            left_out[form] = str(error)
    return made, left_out


def page(circuit: object) -> str | None:
    """The page on which a circuit lives; None of a layer without perception, which does not."""
    if isinstance(circuit, Circuit):
        circuit = CellNetlist.from_circuit(circuit) if circuit.perceive else None
    if not isinstance(circuit, CellNetlist | Controller):
        return None
    return text_of(export(circuit, "circuit", "html"), "circuit.html")


def _module(netlist: Exported, form: str) -> ModuleType:
    """Imported when it is asked for: a proof brings what no other format needs. Raises CircuitError."""
    row = FORMATS[form]
    module = row.module
    if isinstance(netlist, FunctionNetlist):
        if why := row.cells_only or ("" if isinstance(netlist, Controller) else row.lives):
            raise CircuitError(f"The format {form} cannot hold a {netlist.kind}: {why}.")
        module = f"functions.{row.module}" if row.framed else row.module
    if isinstance(netlist, Grid):
        if not row.grid:
            able = ", ".join(name for name, other in FORMATS.items() if other.grid)
            raise CircuitError(f"The format {form} has no grid of a given size: --grid is for {able}.")
        module = row.grid
    return importlib.import_module(f"difflogic.circuits.export.{module}")


@overload
def written(netlist: CellNetlist, form: str) -> CellNetlist: ...


@overload
def written(netlist: FunctionNetlist, form: str) -> FunctionNetlist: ...


@overload
def written(netlist: Grid, form: str) -> Grid: ...


def written(netlist: Exported, form: str) -> Exported:
    """Return what a format holds of a netlist."""
    if FORMATS[form].every_gate:
        return netlist
    if isinstance(netlist, Grid):
        return netlist.with_cell(simplify.structural(netlist.cell))
    return function.structural(netlist) if isinstance(netlist, FunctionNetlist) else simplify.structural(netlist)


def verify(netlist: Exported, name: str, form: str, files: Files) -> list[str]:
    """Return what was proved of `files`, in sentences. Raises ToolError if something differs or a tool is missing."""
    held = written(netlist, form)
    proved: list[str] = _module(netlist, form).verify(held, identifier(name), files)
    if held is netlist:
        return proved
    verdict = _compared(netlist, held)
    if not verdict.equal:
        raise ExportError(f"The circuit without its pass-throughs is not proved equal to what it was: {verdict.how}.")
    return [*proved, f"that is the whole circuit ({verdict.how})"]


def _compared(netlist: Exported, held: Exported) -> Equivalence:
    if isinstance(netlist, FunctionNetlist) and isinstance(held, FunctionNetlist):
        return function.prove(netlist, held, ["difflogic"])[0]
    one, other = (each.cell if isinstance(each, Grid) else each for each in (netlist, held))
    return prove(one, other, ["difflogic"])[0]
