"""Resources and clock frequency of a complete automaton or a function on an FPGA, by yosys and nextpnr.

yosys maps the module that `export --format verilog --grid` writes. It maps the cell once and flattens the hierarchy
afterwards: for 256 cells of Life this takes a seventh of the time of flattening first, and fewer lookup tables. A
function is routed with shift registers, since it may have more inputs than a device has pins; its resources exclude
them. nextpnr places and routes; without it no clock is reported, since the delays of wires cannot be estimated.
"""

import json
import re
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
    """FPGA family: the commands that synthesize and route for it, and its devices."""

    synth: str
    """Synthesis command for yosys."""
    luts: dict[str, int]
    """Mapping from regular expressions of mapped cells' types to numbers of lookup tables; other types have none."""
    flip_flops: str
    devices: dict[str, tuple[int, int]]
    """Number of lookup tables and number of flip-flops by device name; the first device is the default."""
    router: tuple[str, ...] = ()
    """nextpnr command and options, with `{}` for the device; empty if no router is available for the family."""


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
    """Resources and clock frequency of a grid on an FPGA device."""

    grid: Grid
    family: str
    device: str
    luts: int
    flip_flops: int
    fmax: float | None
    """Maximum clock frequency in MHz after routing; None if the grid was not routed."""
    no_fmax: str = ""
    """Reason why `fmax` is None: the grid does not fit, or the router failed or is missing."""

    @property
    def cells(self) -> int:
        return self.grid.height * self.grid.width

    @cached_property
    def cells_per_device(self) -> int:
        """Number of automaton cells that would fit if all lookup tables and flip-flops of the device were usable."""
        luts, flip_flops = FAMILIES[self.family].devices[self.device]
        return min(luts * self.cells // self.luts, flip_flops * self.cells // self.flip_flops)

    @property
    def fits(self) -> bool:
        """True if the grid fits on the device."""
        return self.cells_per_device >= self.cells

    @property
    def updates(self) -> float | None:
        """Cell updates per second of this grid at `fmax`, with one step per clock cycle; None without `fmax`."""
        return None if self.fmax is None else self.cells * self.fmax * 1e6


@dataclass(frozen=True)
class FunctionReport:
    """Resources and clock frequency of a function on an FPGA device."""

    luts: int
    fmax: float | None
    """Maximum clock frequency in MHz after routing between registers, one sample per cycle; None if not routed."""
    no_fmax: str = ""


def of_function(
    function: FunctionNetlist,
    family: str,
    device: str | None = None,
    seconds: float = tools.PATIENCE,
    tell: Tell = lambda _: None,
) -> FunctionReport:
    """Return resources and clock frequency of a function on a device; arguments and errors are as for `report`."""
    device = device_of(family, device)
    row = FAMILIES[family]
    lean = formats.written(function, "verilog")
    design = text_of(formats.export(lean, _NAME, "verilog"), f"{_NAME}.v")
    with folder_of({f"{_NAME}.v": design + fill("function_registers.v", lean, _NAME)}) as folder:
        tell(f"{tools.YOSYS} maps {lean.kind} of {len(lines(lean))} gates")
        luts, _ = _mapped(row, f"{_NAME}_{lean.kind}", folder, seconds)
        if luts > row.devices[device][0]:
            return FunctionReport(luts, None, f"too large: {device} has only {row.devices[device][0]} lookup tables")
        _mapped(row, f"{_NAME}_registers", folder, seconds)
        return FunctionReport(luts, *_routed(row, device, folder, seconds, tell))


def device_of(family: str, device: str | None) -> str:
    """Return `device`, or the first device of `family` if None. Raises UsageError for an unknown device or family."""
    if family not in FAMILIES:
        raise UsageError(f"Unknown FPGA family {family!r}: expected {', '.join(FAMILIES)}.")
    devices = FAMILIES[family].devices
    if device is not None and device not in devices:
        raise UsageError(f"Unknown device {device!r} of {family}: expected {', '.join(devices)}.")
    return device or next(iter(devices))


def report(
    grid: Grid, family: str, device: str | None = None, seconds: float = tools.PATIENCE, tell: Tell = lambda _: None
) -> Report:
    """Return resources and clock frequency of a grid on a device. A tool may run for `seconds`; `tell` gets messages.

    Raises UsageError for an unknown family or device, ToolError if yosys is missing or fails or a result is impossible.
    """
    device = device_of(family, device)
    row = FAMILIES[family]
    with folder_of(export(grid, _NAME)) as folder:
        tell(f"{tools.YOSYS} maps {grid.width}x{grid.height} cells")
        mapped = Report(grid, family, device, *_mapped(row, f"{_NAME}_automaton", folder, seconds), None)
        taken = f"{mapped.luts} lookup tables and {mapped.flip_flops} flip-flops"
        # Each bit of the state needs a flip-flop, since all bits can be read. Loading a state needs lookup tables.
        if mapped.flip_flops < grid.values or not mapped.luts:
            raise ToolError(f"{tools.YOSYS} reported {taken}, too few for a state of {grid.values} bits.")
        if mapped.fits:
            fmax, reason = _routed(row, device, folder, seconds, tell)
            return replace(mapped, fmax=fmax, no_fmax=reason)
    luts, flip_flops = row.devices[device]
    return replace(
        mapped,
        no_fmax=f"{grid.width}x{grid.height} cells take {taken}, but {device} of {family} has {luts} and {flip_flops}: "
        f"at most about {mapped.cells_per_device} cells fit, use a smaller --grid.",
    )


def _mapped(row: Family, top: str, folder: Path, seconds: float) -> tuple[int, int]:
    """Map the module `top`, write `top.json` for the router, and return numbers of lookup tables and flip-flops."""
    script = f"read_verilog {_NAME}.v; {row.synth} -top {top}; flatten; opt_clean -purge; write_json {_NAME}.json"
    tools.run_in(folder, tools.YOSYS, "-q", "-p", script, seconds=seconds)
    data = _json(folder / f"{_NAME}.json", tools.YOSYS)
    try:
        cells = [str(cell["type"]) for cell in data["modules"][top]["cells"].values()]
    except (KeyError, TypeError, AttributeError) as error:
        raise ToolError(f"{tools.YOSYS} wrote a netlist without the cells of {top}.") from error
    luts = sum(size for kind in cells for name, size in row.luts.items() if re.fullmatch(name, kind))
    return luts, sum(re.match(row.flip_flops, kind) is not None for kind in cells)


def _routed(row: Family, device: str, folder: Path, seconds: float, tell: Tell) -> tuple[float | None, str]:
    """Place and route, and return `fmax` and an empty text, or None and the reason."""
    if not row.router:
        return None, "no router is available for this family"
    program, *options = row.router
    if advice := tools.missing(program):
        return None, advice
    tell(f"{program} places and routes them")
    options = [option.format(device) for option in options]
    files = ["--json", f"{_NAME}.json", "--report", "routed.json"]
    fixed = ("-q", "--seed", "1", "--freq", "100", "--timing-allow-fail")
    try:
        tools.run_in(folder, program, *fixed, *options, *files, seconds=seconds)
    except ToolError as error:  # the resources are known nevertheless
        return None, str(error)
    clocks = _json(folder / "routed.json", program).get("fmax", {})
    try:
        fmax = min(float(clock["achieved"]) for clock in clocks.values())
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ToolError(f"{program} reported no clock.") from error
    if not 0 < fmax < 10_000:
        raise ToolError(f"{program} reported a clock of {fmax:g} MHz, expected one between 0 and 10,000 MHz.")
    return fmax, ""


def _json(path: Path, tool: str) -> dict[str, Any]:
    with suppress(OSError, ValueError):
        if isinstance(data := json.loads(path.read_text()), dict):
            return data
    raise ToolError(f"{tool} reported no valid result.")
