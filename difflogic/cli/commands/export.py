"""`difflogic export`: a circuit in the forms that other programs take, and the proof that it is the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from difflogic.cli.options import PATH, circuit_options, force_option, forced, grid_size, tell_choice
from difflogic.errors import CircuitError, DifflogicError, UsageError

if TYPE_CHECKING:
    from difflogic.circuits.export.formats import Exported
    from difflogic.circuits.export.text import Files
    from difflogic.circuits.readers.source import LoadedCircuit

FAILED = 1
ALL = "all"


class FormatChoice(click.ParamType[str]):
    """A name from the table of formats, which is read only when the command runs."""

    name = "format"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from difflogic.circuits.export.formats import FORMATS

        # Not click.Choice: the table of formats imports every exporter, which `difflogic export --help` can do without.
        if value not in (*FORMATS, ALL):
            self.fail(f"{value!r} is not a format: expected {', '.join(FORMATS)} or {ALL}.", param, ctx)
        return value


@click.command("export")
@click.argument("circuit", type=PATH)
@circuit_options
@click.option(
    "--format",
    "forms",
    type=FormatChoice(),
    multiple=True,
    metavar="FORMAT",
    help="A format from the list above, or `all`. May be repeated.",
)
@click.option(
    "--grid",
    type=grid_size,
    metavar="WIDTHxHEIGHT",
    help="Write a whole automaton with this many cells: verilog or aiger.",
)
@click.option("--out", "-o", type=PATH, default=Path(), help="The folder to write to [.].")
@click.option("--name", help="The name of files and modules [that of the circuit's file or folder].")
@click.option(
    "--fraction-bits",
    type=click.IntRange(0, 60),
    metavar="BITS",
    help="For a controller in fixed point: the number of fraction bits [16, or more for close thresholds].",
)
@click.option("--verify", is_flag=True, help="Check each export with a program for its format, if one is installed.")
@force_option
def command(
    circuit: Path,
    periodic: bool | None,
    visible: int | None,
    forms: tuple[str, ...],
    grid: tuple[int, int] | None,
    out: Path,
    name: str | None,
    fraction_bits: int | None,
    verify: bool,
) -> int:
    """Write CIRCUIT, a run or a file that holds a circuit or a controller, for other programs.

    \b
    c          a C99 header, 64 cells per word, and a demo
    verilog    a cell, a grid and a self-checking test bench
    vhdl       the same in VHDL-2008
    blif       for logic synthesis
    aiger      binary AIGER, for ABC and model checkers
    svg        a diagram
    digitaljs  for the DigitalJS simulator in the browser
    golly      a rule and a pattern for Golly
    wgsl       a WebGPU compute shader, 32 cells per word
    html       one web page that runs the automaton, without a network
    numpy      a Python module that needs NumPy only
    json       circuit.json, as in a run folder: every gate

    A controller (controller.json) takes an observation and gives the number of an action. It is written in floating
    point and in fixed point. digitaljs, golly and wgsl cannot hold one.

    With --grid WIDTHxHEIGHT, verilog is a module for an FPGA with reset, start and clock enable. Its state is read
    and written byte by byte or bit by bit. aiger then holds the values of the grid as latches. If every start of
    the run should end in one picture, it also holds the claim that the picture is there after the task's steps, and
    stays.

    The same circuit always gives the same bytes. All formats but json leave out what does not matter:
    pass-throughs, constants, duplicate gates, gates that no output needs, and channels that never influence the
    picture. With --verify the exit code is 1 if an export differs from the circuit, or if the program that checks
    it is not installed.

    Example: difflogic export runs/NAME --format c --verify

    Example: difflogic export runs/NAME --format verilog --grid 16x16 --verify
    """  # noqa: D301
    from difflogic.circuits.export import formats
    from difflogic.circuits.readers import source
    from difflogic.circuits.synthesis.convert import gate_count
    from difflogic.evaluation.proof import claimed_grid

    if not forms:
        raise UsageError(f"--format says what to write: {', '.join(formats.FORMATS)}, or {ALL}.")
    wanted = list(formats.FORMATS) if ALL in forms else list(dict.fromkeys(forms))
    netlist: Exported
    controller = source.controller(circuit)
    if controller is None:
        if fraction_bits is not None:
            raise UsageError("--fraction-bits is for controllers: the cells of an automaton are bits already.")
        given = source.load(circuit, periodic, visible)
        tell_choice(given.told)
        _tell(given, wanted)
        netlist = given.netlist
        if grid is not None:
            netlist = claimed_grid(netlist, given.config, *grid)
            # Of the formats that take a grid, only that of model checkers holds the claim.
            if netlist.target is not None and "aiger" in wanted:
                click.echo(f"aiger: with the claim that every start shows the picture from step {netlist.steps} on")
    elif grid is not None:
        raise UsageError("--grid is for the cells of an automaton: a controller has none.")
    else:
        netlist = replace(controller, thermometer=replace(controller.thermometer, fraction_bits=fraction_bits))
        fixed = netlist.thermometer.fixed_point()
        click.echo(
            f"{circuit.resolve().name}: {gate_count(netlist)} two-input gates, {netlist.inputs} thresholds; in fixed "
            f"point {fixed.width} bits a number, {fixed.fraction_bits} of them behind the point"
        )
    name, failed = name or _name_of(circuit), False
    for form in wanted:
        files = _exported(netlist, name, form, out, may_fail=ALL in forms)
        if files and verify:
            failed |= not _proved(netlist, name, form, files)
    return FAILED if failed else 0


def _tell(given: LoadedCircuit, wanted: list[str]) -> None:
    """Say how many gates there are, and how many are written."""
    from difflogic.circuits.export import formats
    from difflogic.circuits.export.text import channel_names
    from difflogic.circuits.synthesis.convert import gate_count

    said = f"{given.name}: {gate_count(given.netlist)} two-input gates per cell"
    for form in wanted:
        if (held := formats.written(given.netlist, form)) is not given.netlist:
            said += f"; after removing what has no effect: {gate_count(held)}, channels {channel_names(held.origin)}"
            break
    click.echo(said)


def _name_of(path: Path) -> str:
    """A run is called by its folder, a file by its name without the ending, `circuit.json` by its folder too."""
    whole = path.resolve()
    return whole.parent.name if whole.name == "circuit.json" else whole.stem if whole.is_file() else whole.name


def _exported(netlist: Exported, name: str, form: str, out: Path, may_fail: bool) -> Files:
    """The files as they are written; none where the format cannot hold the circuit, which `may_fail` lets pass."""
    from difflogic.circuits.export import formats
    from difflogic.circuits.export.text import write

    try:
        files = formats.export(netlist, name, form)
    except CircuitError as error:
        # One format that was named and cannot be written is an error; of all formats those that can be are written.
        if not may_fail:
            raise
        click.echo(f"{form}: left out. {error}")
        return {}
    write(files, out, forced())
    click.echo(f"{form}: {', '.join(str(out / file) for file in files)}")
    return files


def _proved(netlist: Exported, name: str, form: str, files: Files) -> bool:
    from difflogic.circuits.export import formats

    try:
        proofs = formats.verify(netlist, name, form, files)
    except DifflogicError as error:
        click.echo(f"{form}: NOT VERIFIED. {error}", err=True)
        return False
    click.echo(f"{form}: verified: {'; '.join(proofs)}.")
    return True
