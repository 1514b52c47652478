"""`difflogic export`: a circuit in the forms of other programs, with a proof; and `export-page`."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from difflogic.cli.options import PATH, circuit_options, force_option, forced, grid_size, output_option
from difflogic.cli.screen.echo import echo
from difflogic.cli.screen.result import FAILED, show
from difflogic.config.choices import EXPORTS
from difflogic.errors import DifflogicError, UsageError
from difflogic.system.files import Output, inside

if TYPE_CHECKING:
    from difflogic.actions.export import Exports

ALL = "all"


FORMS = "\n".join(f"{name:9}  {about}" for name, about in EXPORTS.items())
ABOUT = f"""Write CIRCUIT, a run or a file that holds a circuit or a controller, for other programs.

\b
{FORMS}

A controller (controller.json) takes an observation and gives the number of an action. It is written in floating
point and in fixed point. digitaljs, golly and wgsl cannot hold one.

With --grid WIDTHxHEIGHT, verilog is a module for an FPGA with reset, start and clock enable. Its state is read
and written byte by byte or bit by bit. aiger then holds the values of the grid as latches, and, if every start of
the run should end in one image, the claim that the image is there after the task's steps, and stays.

The same circuit always gives the same bytes. All formats but json leave out what does not matter: pass-throughs,
constants, duplicate gates, gates that no output needs, and channels that never influence the image. With --verify
the exit code is 1 if an export differs from the circuit, or if the program that checks it is not installed.

Example: difflogic export runs/NAME --format c --verify

Example: difflogic export runs/NAME --format verilog --grid 16x16 --verify
"""


@click.command("export", help=ABOUT)
@click.argument("circuit", type=PATH)
@circuit_options
@click.option("--format", "forms", multiple=True, metavar="FORMAT", help="A format above, or `all`. May be repeated.")
@click.option("--grid", type=grid_size, metavar="WIDTHxHEIGHT", help="Write this many cells: verilog or aiger.")
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
def command(circuit: Path, forms: tuple[str, ...], out: Path, verify: bool, **asked: Any) -> int:
    """Write a circuit in some forms."""
    from difflogic.actions.export import export
    from difflogic.circuits.export.formats import FORMATS
    from difflogic.circuits.export.text import write

    if not forms:
        raise UsageError(f"--format says what to write: {', '.join(FORMATS)}, or {ALL}.")
    found = export(circuit, () if ALL in forms else forms, **asked)
    code = show(found, as_json=False)
    for form, files in found.by_format.items():
        write(files, out, forced())
        echo(f"{form}: {', '.join(str(out / file) for file in files)}")
        if verify and not _verified(found, form):
            code = FAILED
    return code


def _verified(found: Exports, form: str) -> bool:
    try:
        proofs = found.verify(form)
    except DifflogicError as error:
        echo(f"{form}: NOT VERIFIED. {error}", err=True)
        return False
    echo(f"{form}: verified: {'; '.join(proofs)}.")
    return True


@click.command("export-page")
@click.argument("presets", metavar="[PRESET]...", nargs=-1)
@output_option(help="The file to write [train.html].")
@force_option
def page(presets: tuple[str, ...], out: Output | None) -> None:
    """Write one web page that trains each PRESET in a browser, by WebGPU.

    The page needs no network, no installation and no server. It trains by the recipe robust until a circuit is
    solved, with other wiring whenever training stalls. It hands over circuit.json and config.toml, which every
    command takes. Without a PRESET it holds all of them. The page opens on the first one.

    \b
    draw, draw-small                    an image of the visitor's own, 16x16 or 12x12 cells in eight colours
    checkerboard-small, checkerboard    a board, from noise
    game-of-life                        Conway's rule
    colored-g, lizard                   an image

    Example: difflogic export-page checkerboard-small game-of-life draw
    """  # noqa: D301
    from difflogic.page.export import training_page

    out = out or Output(inside(Path("train.html"), Path()), forced())
    text = training_page(presets or None).encode()
    out.write(text)
    echo(f"{out}: {len(text) / 1e3:.0f} kB, {len(gzip.compress(text)) / 1e3:.0f} kB as servers send it")
