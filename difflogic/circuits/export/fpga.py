"""yosys and nextpnr find how much of an FPGA a whole automaton needs, and how fast it runs there.

yosys maps the module that `export --format verilog --grid` writes. The cell is mapped once and its hierarchy dissolved
afterwards: of 256 cells of Life in a seventh of the time, with fewer tables. A function is mapped alone, and routed
between registers that bits are shifted through, for it may have more inputs than a device has pins. nextpnr places and
routes; without it nothing is said of the clock, for there is no honest way to guess wires.
"""

import json
import re
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from difflogic.circuits.export import formats
from difflogic.circuits.export.automaton import export
from difflogic.circuits.export.proving import folder_of
from difflogic.circuits.export.text import fill, text_of
from difflogic.circuits.synthesis import tools
from difflogic.errors import ToolError, UsageError
from difflogic.model.function_netlist import FunctionNetlist
from difflogic.model.grid import Grid
from difflogic.model.straight_line import lines

_NAME = "top"
Tell = Callable[[str], object]


@dataclass(frozen=True)
class Family:
    """A family says how the tools treat the devices of a maker."""

    synth: str
    """The command of yosys."""
    luts: dict[str, int]
    """Lookup tables that a cell of the mapped netlist takes, by the pattern of its name; other names take none."""
    flip_flops: str
    devices: dict[str, tuple[int, int]]
    """Lookup tables and flip-flops of each; the first is meant where none is named."""
    router: tuple[str, ...] = ()
    """nextpnr and its options; `{}` is the device. None where no router is packaged."""


FAMILIES = {
    "ice40": Family(
        "synth_ice40 -noflatten",
        {"SB_LUT4": 1},
        "SB_DFF",
        {"hx8k": (7680, 7680), "up5k": (5280, 5280), "hx1k": (1280, 1280)},
        ("nextpnr-ice40", "--{}", "--pcf-allow-unconstrained"),
    ),
    "ecp5": Family(
        "synth_ecp5 -nowidelut -noflatten",
        {"LUT4": 1, "CCU2C": 2},
        "TRELLIS_FF",
        {"25k": (24288, 24288), "45k": (43848, 43848), "85k": (83640, 83640)},
        ("nextpnr-ecp5", "--{}", "--lpf-allow-unconstrained"),
    ),
    "xilinx": Family(
        "synth_xilinx -nosrl -nowidelut -family xc7",
        {"LUT[1-6]": 1},
        "FD[A-Z]+",
        {"xc7a35t": (20800, 41600), "xc7a100t": (63400, 126800)},
    ),
}


@dataclass(frozen=True)
class Report:
    """A report says what one grid needs on one device, and how fast it is there."""

    grid: Grid
    family: str
    device: str
    luts: int
    flip_flops: int
    fmax: float | None
    """In MHz, after routing; None where that was not possible."""
    no_fmax: str = ""
    """Why not: a sentence where the grid does not fit, or the router failed."""

    @property
    def cells(self) -> int:
        return self.grid.height * self.grid.width

    @cached_property
    def cells_per_device(self) -> int:
        """Return how many cells fit, if all lookup tables and flip-flops could be used."""
        luts, flip_flops = FAMILIES[self.family].devices[self.device]
        return min(luts * self.cells // self.luts, flip_flops * self.cells // self.flip_flops)

    @property
    def fits(self) -> bool:
        """Whether the device has as many of both as the grid takes."""
        return self.cells_per_device >= self.cells

    @property
    def updates(self) -> float | None:
        """Cell updates a second of this grid at Fmax: a step is a clock."""
        return None if self.fmax is None else self.cells * self.fmax * 1e6


@dataclass(frozen=True)
class FunctionReport:
    """A report says what a function needs on one device: no registers, and so long from one to another."""

    luts: int
    fmax: float | None
    """In MHz between registers, after routing: one sample a clock; None where that was not possible."""
    no_fmax: str = ""


def of_function(
    function: FunctionNetlist,
    family: str,
    device: str | None = None,
    seconds: float = tools.PATIENCE,
    tell: Tell = lambda _: None,
) -> FunctionReport:
    """Return what a function takes; arguments and errors are those of `report`."""
    device = device_of(family, device)
    row = FAMILIES[family]
    held = formats.written(function, "verilog")
    design = text_of(formats.export(held, _NAME, "verilog"), f"{_NAME}.v")
    with folder_of({f"{_NAME}.v": design + fill("function_registers.v", held, _NAME)}) as folder:
        tell(f"{tools.YOSYS} maps {held.kind} of {len(lines(held))} gates")
        luts, _ = _mapped(row, f"{_NAME}_{held.kind}", folder, seconds)
        if luts > row.devices[device][0]:
            return FunctionReport(luts, None, f"it does not fit: {device} has {row.devices[device][0]} lookup tables")
        _mapped(row, f"{_NAME}_registers", folder, seconds)
        return FunctionReport(luts, *_routed(row, device, folder, seconds, tell))


def device_of(family: str, device: str | None) -> str:
    """The device of a family. Raises UsageError for one that is not known."""
    if family not in FAMILIES:
        raise UsageError(f"{family!r} is not an FPGA family: expected {', '.join(FAMILIES)}.")
    known = FAMILIES[family].devices
    if device is not None and device not in known:
        raise UsageError(f"{device!r} is not a device of {family}: expected {', '.join(known)}.")
    return device or next(iter(known))


def report(
    grid: Grid, family: str, device: str | None = None, seconds: float = tools.PATIENCE, tell: Tell = lambda _: None
) -> Report:
    """Return what the grid takes; each tool is stopped after so many `seconds`, and `tell` hears when it begins.

    Raises UsageError for an unknown device, and ToolError where yosys is missing or slow, or gives what cannot be.
    """
    device = device_of(family, device)
    row = FAMILIES[family]
    with folder_of(export(grid, _NAME)) as folder:
        tell(f"{tools.YOSYS} maps {grid.width}x{grid.height} cells")
        found = Report(grid, family, device, *_mapped(row, f"{_NAME}_automaton", folder, seconds), None)
        # Every value of the state can be read, so that none of its registers can be saved; and loading takes a table.
        if found.flip_flops < grid.values or not found.luts:
            counted = f"{found.luts} lookup tables and {found.flip_flops} flip-flops for {grid.values} values"
            raise ToolError(f"{tools.YOSYS} gave {counted}, which cannot be.")
        if found.fits:
            fmax, reason = _routed(row, device, folder, seconds, tell)
            return replace(found, fmax=fmax, no_fmax=reason)
    luts, flip_flops = row.devices[device]
    return replace(
        found,
        no_fmax=f"{grid.width}x{grid.height} cells take {found.luts} lookup tables and {found.flip_flops} flip-flops, "
        f"but {device} of {family} has {luts} and {flip_flops}: at most some {found.cells_per_device} cells fit, "
        "give a smaller --grid.",
    )


def _mapped(row: Family, top: str, folder: Path, seconds: float) -> tuple[int, int]:
    """Lookup tables and flip-flops of a module; `top.json` is for the router."""
    script = f"read_verilog {_NAME}.v; {row.synth} -top {top}; flatten; opt_clean -purge; write_json {_NAME}.json"
    tools.run_in(folder, tools.YOSYS, "-q", "-p", script, seconds=seconds)
    data = _json(folder / f"{_NAME}.json", tools.YOSYS)
    try:
        cells = Counter(cell["type"] for cell in data["modules"][top]["cells"].values())
    except (KeyError, TypeError, AttributeError) as error:
        raise ToolError(f"{tools.YOSYS} gave a netlist without the cells of {top}.") from error
    luts = sum(
        size * count for name, size in row.luts.items() for kind, count in cells.items() if re.fullmatch(name, kind)
    )
    return luts, sum(count for kind, count in cells.items() if re.match(row.flip_flops, kind))


def _routed(row: Family, device: str, folder: Path, seconds: float, tell: Tell) -> tuple[float | None, str]:
    """Fmax, or why there is none."""
    if not row.router:
        return None, "no router for this family is packaged"
    program, *options = row.router
    if advice := tools.missing(program):
        return None, advice
    tell(f"{program} places and routes them")
    options = [option.format(device) for option in options]
    files = ["--json", f"{_NAME}.json", "--report", "routed.json"]
    fixed = ("-q", "--seed", "1", "--freq", "100", "--timing-allow-fail")
    try:
        tools.run_in(folder, program, *fixed, *options, *files, seconds=seconds)
    except ToolError as error:  # what the grid takes is known all the same
        return None, str(error)
    clocks = _json(folder / "routed.json", program).get("fmax", {})
    try:
        found = min(float(clock["achieved"]) for clock in clocks.values())
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ToolError(f"{program} gave a report without a clock.") from error
    if not 0 < found < 10_000:
        raise ToolError(f"{program} gave a clock of {found:g} MHz, which cannot be.")
    return found, ""


def _json(path: Path, tool: str) -> dict[str, Any]:
    with suppress(OSError, ValueError):
        if isinstance(data := json.loads(path.read_text()), dict):
            return data
    raise ToolError(f"{tool} gave no result that can be read.")
