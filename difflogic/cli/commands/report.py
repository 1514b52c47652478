"""`difflogic report`: print the FPGA resources and the clock speed of a circuit."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from difflogic.cli.options import PATH, POSITIVE, circuit_options, grid_size, json_document_option, show_choice
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
@click.option("--device", metavar="NAME", help="A device of --fpga, such as up5k [hx8k, 25k or xc7a35t by family].")
@click.option("--grid", type=grid_size, default="8x8", metavar="WIDTHxHEIGHT", help="The grid to map [8x8].")
@click.option("--seconds", type=POSITIVE, default=600.0, show_default=True, help="The time limit of each tool.")
@json_document_option
def command(
    circuit: Path, family: str, device: str | None, grid: tuple[int, int], seconds: float, as_json: bool, **options: Any
) -> int:
    """Print the FPGA resources and the clock speed of a grid of CIRCUIT, a run or a file.

    yosys maps the module that `export --format verilog --grid` writes. If nextpnr is installed, it places and
    routes the module, and finds Fmax, the fastest clock. All cells take one step per clock. The number of pins does
    not depend on the grid or the channels, because the state is read and written byte by byte. A function or a
    controller is mapped alone; Fmax is then the clock of registers at its inputs and outputs.

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
    loaded = source.load(circuit, **options)
    show_choice(loaded.told)
    cells = formats.written(Grid(loaded.netlist, *grid), "verilog")
    report = fpga.report(cells, family, device, seconds, working)
    if not report.fits:
        raise CircuitError(report.no_fmax)
    luts, flip_flops = fpga.FAMILIES[family].devices[device]
    tables = lut_count(loaded.netlist)
    if as_json:
        facts = {"family": family, "device": device, "width": cells.width, "height": cells.height, "luts": report.luts}
        facts |= {"lut3_per_cell": tables, "flip_flops": report.flip_flops, "fmax_mhz": report.fmax}
        facts |= {"cells_per_device": report.cells_per_device, "cell_updates_per_second": report.updates}
        echo(json.dumps(facts | {"no_fmax": report.no_fmax}, indent=2))
        return 0
    rows = [
        ("lookup tables", f"{report.luts} of {luts}, {report.luts / report.cells:.1f} per cell"),
        ("three-input tables per cell", str(tables)),
        ("flip-flops", f"{report.flip_flops} of {flip_flops}"),
        ("cells that would fit", str(report.cells_per_device)),
        ("Fmax", report.no_fmax if report.fmax is None else f"{report.fmax:.1f} MHz"),
    ]
    if report.updates is not None:
        rows.append(("cell updates per second", f"{report.updates:.3g} of these {report.cells} cells"))
    table.show((f"{cells.width}x{cells.height} cells", f"{family} {device}"), rows, texts=True)
    return 0


def _function(function: FunctionNetlist, report: FunctionReport, device: str, as_json: bool) -> int:
    if as_json:
        echo(json.dumps(asdict(report) | {"device": device}, indent=2))
        return 0
    clock = report.no_fmax if report.fmax is None else f"{report.fmax:.1f} MHz, one {function.words.sample} per clock"
    rows = [("lookup tables", str(report.luts)), ("Fmax between registers", clock)]
    table.show((function.kind, device), rows, texts=True)
    return 0
