"""`difflogic export-page`: a web page that trains presets on the visitor's graphics card."""

from __future__ import annotations

import gzip
from pathlib import Path

import click

from difflogic.cli.options import force_option, forced, output_option
from difflogic.cli.screen.echo import echo
from difflogic.system.files import Output, inside


@click.command("export-page")
@click.argument("presets", metavar="[PRESET]...", nargs=-1)
@output_option(help="The file to write [train.html].")
@force_option
def command(presets: tuple[str, ...], out: Output | None) -> None:
    """Write one web page that trains each PRESET in a browser, by WebGPU.

    The page needs no network, no installation and no server. It trains by the recipe robust until a circuit is
    solved, with other wiring whenever training stalls. It hands over circuit.json and config.toml, which every
    command takes. Without a PRESET it is checkerboard-small. The page shows the first one.

    \b
    checkerboard-small, checkerboard    a board, from noise
    game-of-life                        Conway's rule
    colored-g, lizard                   a picture
    draw, draw-small                    a picture of the visitor's own, 16x16 or 12x12 cells in eight colours

    Example: difflogic export-page checkerboard-small game-of-life draw
    """  # noqa: D301
    from difflogic.page.export import DEFAULT, training_page

    out = out or Output(inside(Path("train.html"), Path()), forced())
    page = training_page(presets or (DEFAULT,)).encode()
    out.write(page)
    echo(f"{out}: {len(page) / 1e3:.0f} kB, {len(gzip.compress(page)) / 1e3:.0f} kB as servers send it")
