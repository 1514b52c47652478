"""`difflogic report`: what a circuit takes of hardware, and how fast it is there."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from difflogic.cli.options import PATH, circuit_options, grid_size, json_document_option, tell_choice
from difflogic.cli.screen import table
from difflogic.cli.screen.echo import echo
from difflogic.cli.screen.sinks import working
from difflogic.errors import CircuitError

if TYPE_CHECKING:
    from difflogic.circuits.export.fpga import FunctionReport
    from difflogic.model.function_netlist import FunctionNetlist


@click.command("report")
@click.argument("circuit", type=PATH)
@circuit_options
@click.option("--fpga", "family", metavar="ice40|ecp5|xilinx", required=True, help="The family of FPGAs.")
@click.option("--device", metavar="NAME", help="A device of the family, for example up5k [hx8k, 25k or xc7a35t].")
@click.option("--grid", type=grid_size, default="8x8", metavar="WIDTHxHEIGHT", help="The cells that are placed [8x8].")
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=600.0,
    show_default=True,
    help="Stop each tool after this many seconds.",
)
@json_document_option
def command(
    circuit: Path, family: str, device: str | None, grid: tuple[int, int], seconds: float, as_json: bool, **asked: Any
) -> int:
    """Print what a whole automaton of CIRCUIT, a run or a file, takes of an FPGA, and how fast it runs there.

    yosys maps the module that `export --format verilog --grid` writes. If nextpnr is installed, it places and
    routes the module, and finds Fmax, the fastest clock. All cells take one step per clock. The number of pins does
    not depend on the grid or the channels, because the state is read and written byte by byte. A function or a
    controller is mapped alone; Fmax is then the clock of registers before and behind it, one sample per clock.

    Simplify the circuit first: this command only removes its pass-throughs.

    Example: difflogic report runs/NAME --fpga ice40 --grid 16x16
    """
    from difflogic.circuits.export import formats, fpga
    from difflogic.circuits.readers import source
    from difflogic.circuits.synthesis.luts import lut_count
    from difflogic.model.grid import Grid

    device = fpga.device_of(family, device)
    if (function := source.function(circuit)) is not None:
        return _function(function, fpga.of_function(function, family, device, seconds, working), device, as_json)
    given = source.load(circuit, **asked)
    tell_choice(given.told)
    placed = formats.written(Grid(given.netlist, *grid), "verilog")
    found = fpga.report(placed, family, device, seconds, working)
    if not found.fits:
        raise CircuitError(found.no_fmax)
    luts, flip_flops = fpga.FAMILIES[family].devices[device]
    tables = lut_count(given.netlist)
    if as_json:
        facts = {"family": family, "device": device, "width": placed.width, "height": placed.height, "luts": found.luts}
        facts |= {"lut3_per_cell": tables}
        facts |= {"flip_flops": found.flip_flops, "fmax_mhz": found.fmax, "cells_per_device": found.cells_per_device}
        echo(json.dumps(facts | {"cell_updates_per_second": found.updates, "no_fmax": found.no_fmax}, indent=2))
        return 0
    rows = [
        ("lookup tables", f"{found.luts} of {luts}, {found.luts / found.cells:.1f} a cell"),
        ("three-input tables a cell", str(tables)),
        ("flip-flops", f"{found.flip_flops} of {flip_flops}"),
        ("cells that would fit", str(found.cells_per_device)),
        ("Fmax", found.no_fmax if found.fmax is None else f"{found.fmax:.1f} MHz"),
    ]
    if found.updates is not None:
        rows.append(("cell updates a second", f"{found.updates:.3g} of these {found.cells} cells"))
    table.show((f"{placed.width}x{placed.height} cells", f"{family} {device}"), rows, texts=True)
    return 0


def _function(function: FunctionNetlist, found: FunctionReport, device: str, as_json: bool) -> int:
    if as_json:
        echo(json.dumps(asdict(found) | {"device": device}, indent=2))
        return 0
    clock = found.no_fmax if found.fmax is None else f"{found.fmax:.1f} MHz, a {function.words.sample} a clock"
    rows = [("lookup tables", str(found.luts)), ("Fmax between registers", clock)]
    table.show((function.kind, device), rows, texts=True)
    return 0
