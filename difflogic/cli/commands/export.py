"""`difflogic export`: a circuit in the forms that other programs take, and the proof that it is the same."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from difflogic.cli.options import circuit_options
from difflogic.errors import CircuitError, DifflogicError, UsageError

if TYPE_CHECKING:
    from difflogic.circuits.export.text import Files
    from difflogic.netlist import Netlist

FAILED = 1
ALL = "all"


class FormatChoice(click.ParamType[str]):
    """A name from the table of formats, which is read only when the command runs."""

    name = "format"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from difflogic.circuits.export.formats import FORMATS

        if value not in (*FORMATS, ALL):
            self.fail(f"{value!r} is no format: expected {', '.join(FORMATS)} or {ALL}.", param, ctx)
        return value


@click.command("export")
@click.argument("circuit", type=click.Path(path_type=Path))
@circuit_options
@click.option(
    "--format",
    "forms",
    type=FormatChoice(),
    multiple=True,
    metavar="FORMAT",
    help="What to write, of the list above, or all of it; may be repeated.",
)
@click.option("--out", type=click.Path(path_type=Path), default=Path(), help="The folder to write to [.].")
@click.option("--name", help="What files and modules are called [the circuit's file or folder].")
@click.option("--verify", is_flag=True, help="Prove each export with the real program of its kind, where it is here.")
@click.option("--force", is_flag=True, help="Replace files that are there already.")
def command(
    circuit: Path,
    periodic: bool | None,
    visible: int | None,
    forms: tuple[str, ...],
    out: Path,
    name: str | None,
    verify: bool,
    force: bool,
) -> int:
    """Write CIRCUIT, a run or a file that holds a circuit, for other programs.

    \b
    c          a C99 header, 64 cells per word, and a demo
    verilog    a cell, a grid and a self-checking test bench
    vhdl       the same in VHDL-2008
    blif       for logic synthesis
    aiger      binary AIGER, for ABC and model checkers
    dot, svg   a diagram, for Graphviz or ready to look at
    digitaljs  for the DigitalJS simulator in the browser
    golly      a rule and a pattern for Golly
    wgsl       a WebGPU compute shader, 32 cells per word
    html       one page on which the automaton lives, without a network
    numpy      a Python module that needs NumPy only
    json       circuit.json, as in a run folder

    The same circuit gives the same bytes. Gates that no output needs are left out. With --verify the exit code is
    1 where an export differs from the circuit, or a program that would tell is not installed.

    Example: difflogic export runs/NAME --format c --verify
    """  # noqa: D301
    from difflogic.circuits import source
    from difflogic.circuits.export import formats

    if not forms:
        raise UsageError(f"--format says what to write: {', '.join(formats.FORMATS)}, or {ALL}.")
    netlist = source.load(circuit, periodic, visible).netlist
    name = name or _name_of(circuit)
    wanted = list(formats.FORMATS) if ALL in forms else list(dict.fromkeys(forms))
    failed = False
    for form in wanted:
        try:
            files = formats.export(netlist, name, form)
        except CircuitError as error:
            if ALL not in forms:
                raise
            click.echo(f"{form}: left out. {error}")
            continue
        _write(files, out, force)
        click.echo(f"{form}: {', '.join(str(out / file) for file in files)}")
        if verify:
            failed |= not _proved(netlist, name, form, files)
    return FAILED if failed else 0


def _name_of(path: Path) -> str:
    """A run is called by its folder, a file by its name without the ending, `circuit.json` by its folder too."""
    whole = path.resolve()
    return whole.parent.name if whole.name == "circuit.json" else whole.stem if whole.is_file() else whole.name


def _write(files: Files, out: Path, force: bool) -> None:
    """All files or, where one is there with another content, none. Raises UsageError and OSError."""
    from difflogic.files import write_atomically

    contents = {out / file: text if isinstance(text, bytes) else text.encode() for file, text in files.items()}
    if not force:
        for path, content in contents.items():
            if path.exists() and path.read_bytes() != content:
                raise UsageError(f"{path} is there with another content: --force replaces it, --name avoids it.")
    out.mkdir(parents=True, exist_ok=True)
    for path, content in contents.items():
        write_atomically(path, content)


def _proved(netlist: Netlist, name: str, form: str, files: Files) -> bool:
    from difflogic.circuits.export import formats

    try:
        proofs = formats.verify(netlist, name, form, files)
    except DifflogicError as error:
        click.echo(f"{form}: NOT VERIFIED. {error}", err=True)
        return False
    click.echo(f"{form}: verified: {'; '.join(proofs)}.")
    return True
