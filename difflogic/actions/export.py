"""`export`: convert a circuit to the file formats of other programs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

from difflogic.actions.result import ActionResult, Given, name_of, opened
from difflogic.circuits.export import formats
from difflogic.circuits.export.formats import Exported
from difflogic.circuits.export.text import Files, channel_names
from difflogic.circuits.readers.source import LoadedCircuit
from difflogic.circuits.synthesis.function import live_gates
from difflogic.errors import CircuitError, UsageError
from difflogic.evaluation.proof import claimed_grid
from difflogic.model.function_netlist import FunctionNetlist
from difflogic.system.files import check_links


@dataclass(frozen=True, eq=False, repr=False)
class Exports(ActionResult):
    """Exported circuit and its files in each format."""

    netlist: Exported
    """Exported circuit: a cell, a grid of cells, or a function."""
    name: str
    """Base name of files and modules."""
    by_format: dict[str, Files]

    def verify(self, form: str) -> list[str]:
        """Verify the files of a format; return one sentence per successful check. Raises ExportError or ToolError."""
        return formats.verify(self.netlist, self.name, form, self.by_format[form])


def export(
    given: Given,
    forms: Sequence[str] = (),
    *,
    grid: tuple[int, int] | None = None,
    name: str | None = None,
    fraction_bits: int | None = None,
    periodic: bool | None = None,
    visible: int | None = None,
) -> Exports:
    """Convert a circuit to the file formats of other programs.

        >>> keep = difflogic.CellNetlist.build(channels=1, periodic=True, gates=[], wires=[], outputs=[4])
        >>> list(difflogic.export(keep, ["c"], name="keep").files)
        ['keep.h', 'keep_demo.c']

    Args:
        given: A run or its folder, a file of a circuit or function, or a circuit or function.
        forms: Formats in `difflogic.circuits.export.formats.FORMATS`; empty: all formats that support the circuit.
        grid: `(height, width)` of the grid, for formats that can represent a complete automaton.
        name: Name of files and modules; None: the name of the circuit's file or folder.
        fraction_bits: Number of fractional bits of thresholds; None: 16, or more if thresholds are closer together.
        periodic: Whether the grid wraps around; None: as stated in the file.
        visible: Number of visible channels; None: as stated in the file.

    Returns:
        The files, which depend only on the circuit. `ok` is False if a requested format does not support the circuit.

    Raises:
        UsageError: A format is unknown, or an option does not apply to the circuit.
        CircuitError: The file is not a circuit, or no format can represent it.
        RunFolderError: The run folder contains a link that leads out of it.
    """
    if unknown := sorted(set(forms) - formats.FORMATS.keys()):
        raise UsageError(f"{unknown[0]!r} is not a format: expected {', '.join(formats.FORMATS)}.")
    if isinstance(given, Path | str):
        check_links(Path(given))
    chosen, stem = list(dict.fromkeys(forms)) or list(formats.FORMATS), name or name_of(given)
    held = opened(given, periodic, visible)
    netlist: Exported
    words: list[str] = []
    if isinstance(held, FunctionNetlist):
        if grid is not None:
            raise UsageError(f"--grid requires an automaton, got a {held.kind}.")
        if fraction_bits is not None and held.reads_bits:
            raise UsageError("--fraction-bits requires thresholds of numbers, but this function reads bits.")
        netlist = replace(held, thermometer=replace(held.thermometer, fraction_bits=fraction_bits))
        title, note = _of_function(netlist, given), ""
    elif fraction_bits is not None:
        raise UsageError("--fraction-bits requires a controller or function, got an automaton.")
    else:
        netlist, title, note = held.netlist, _of_cell(held, chosen), held.told
        if grid is not None:
            netlist = claimed_grid(held.netlist, held.config, *grid)
            # Only AIGER, the format of model checkers, includes the claim about a grid.
            if netlist.target is not None and "aiger" in chosen:
                words = [f"aiger: claims that every initial state shows the target from step {netlist.steps} on"]
    exported, left_out = formats.exports(netlist, stem, chosen)
    if not exported:
        raise CircuitError(" ".join(left_out.values()))
    words += [f"{form}: left out. {why}" for form, why in left_out.items()]
    report: dict[str, Any] = {"formats": {form: list(files) for form, files in exported.items()}, "left_out": left_out}
    files = {file: content for each in exported.values() for file, content in each.items()}
    ok = not (forms and left_out)
    return Exports(title, tuple(words), report, files, netlist, stem, exported, ok=ok, told=note)


def _of_cell(circuit: LoadedCircuit, forms: list[str]) -> str:
    """Return a title with the number of gates and, if a format omits channels, the channels that it contains."""
    text = f"{circuit.name}: {live_gates(circuit.netlist)} gates per cell"
    for form in forms:
        if (netlist := formats.written(circuit.netlist, form)) is not circuit.netlist:
            return f"{text}, channels {channel_names(netlist.origin)}"
    return text


def _of_function(function: FunctionNetlist, given: Given) -> str:
    name = Path(given).resolve().name if isinstance(given, str | PathLike) else function.kind
    text = f"{name}: {live_gates(function)} gates, {function.inputs} "
    if function.reads_bits:
        return f"{text}inputs"
    fixed = function.thermometer.fixed_point()
    return (
        f"{text}thresholds; in fixed point {fixed.width} bits per number, {fixed.fraction_bits} of them fraction bits"
    )
