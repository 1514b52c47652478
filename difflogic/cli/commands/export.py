"""`difflogic export`: write a circuit in the formats of other programs, and check it; and `export-page`."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from difflogic.cli.options import PATH, circuit_options, force_option, forced, grid_size, output_option
from difflogic.cli.screen.echo import FAILED, echo
from difflogic.cli.screen.result import show
from difflogic.config.choices import EXPORTS
from difflogic.errors import DifflogicError, UsageError
from difflogic.system.files import Output, inside

if TYPE_CHECKING:
    from difflogic.actions.export import Exports

ALL = "all"
FORMS = "\n".join(f"{name:9}  {about}" for name, about in EXPORTS.items())
ABOUT = f"""Write CIRCUIT, a run or a file that contains a circuit or a controller, for other programs.

\b
{FORMS}

A controller (controller.json) takes an observation and returns the number of an action. It is written in floating
point and in fixed point. digitaljs, golly and wgsl do not support controllers.

With --grid WIDTHxHEIGHT, verilog is a module for an FPGA with reset, start and clock enable. Its state is read
and written byte by byte or bit by bit. aiger then represents the grid by latches. If every initial state of
the run should end in one image, it also claims that the image is there after the task's steps, and stays.

The same circuit always gives the same bytes. All formats except json leave out pass-throughs, constants, duplicate
gates, gates that no output needs, and channels that never influence the image. With --verify the exit code is 1 if an
export differs from the circuit, or if the program that checks it is not installed.

Example: difflogic export runs/NAME --format c --verify

Example: difflogic export runs/NAME --format verilog --grid 16x16 --verify
"""


@click.command("export", help=ABOUT)
@click.argument("circuit", type=PATH)
@circuit_options
@click.option("--format", "forms", multiple=True, metavar="FORMAT", help="A format above, or `all`. May be repeated.")
@click.option("--grid", type=grid_size, metavar="WIDTHxHEIGHT", help="Write a complete grid (verilog, aiger).")
@click.option("--out", "-o", type=PATH, default=Path(), help="The folder to write to [.].")
@click.option("--name", help="The name of files and modules [that of CIRCUIT].")
@click.option(
    "--fraction-bits",
    type=click.IntRange(0, 60),
    metavar="BITS",
    help="For a controller in fixed point: the number of fraction bits [16, or more for close thresholds].",
)
@click.option("--verify", is_flag=True, help="Check each export with a program for its format.")
@force_option
def command(circuit: Path, forms: tuple[str, ...], out: Path, verify: bool, **options: Any) -> int:
    """Write a circuit in the formats `forms`, check the files if `verify` is True, and return the exit code."""
    from difflogic.actions.export import export
    from difflogic.circuits.export.formats import FORMATS
    from difflogic.circuits.export.text import write

    if not forms:
        raise UsageError(f"Missing option --format: choose {', '.join(FORMATS)}, or {ALL}.")
    exports = export(circuit, () if ALL in forms else forms, **options)
    code = show(exports, as_json=False)
    for form, files in exports.by_format.items():
        write(files, out, forced())
        echo(f"{form}: {', '.join(str(out / file) for file in files)}")
        if verify and not _is_verified(exports, form):
            code = FAILED
    return code


def _is_verified(exports: Exports, form: str) -> bool:
    try:
        proofs = exports.verify(form)
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
    """Write one web page for training each PRESET in the browser, with WebGPU.

    The page needs no network, no installation and no server. It trains by the recipe robust until a circuit is
    solved, with new wiring whenever training stalls. It offers circuit.json and config.toml as downloads, for the
    other commands. Without a PRESET it contains all of them. The page opens with the first one.

    \b
    draw, draw-small                    a custom image, 16x16 or 12x12 cells in eight colours
    checkerboard-small, checkerboard    a board, from noise
    game-of-life                        Conway's rule
    colored-g, lizard                   an image

    Example: difflogic export-page checkerboard-small game-of-life draw
    """  # noqa: D301
    from difflogic.page.export import training_page

    out = out or Output(inside(Path("train.html"), Path()), forced())
    text = training_page(presets or None).encode()
    out.write(text)
    echo(f"{out}: {len(text) / 1e3:.0f} kB, {len(gzip.compress(text)) / 1e3:.0f} kB compressed")
