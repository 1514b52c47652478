"""`difflogic build`: a circuit made without training."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from difflogic.cli.options import PATH, force_option, json_option, output_option
from difflogic.cli.screen.echo import echo
from difflogic.cli.screen.result import next_lines, show

if TYPE_CHECKING:
    from difflogic.system.files import Output

NEXT = (
    ("difflogic simplify {0} -o small.json", "fewer gates, proved equal"),
    ("difflogic simulate {0}", "how it lives on a large grid"),
)


@click.command("build")
@click.argument("what", type=PATH)
@click.option("--frames", type=click.IntRange(min=2), metavar="N", help="Use only the first N frames of a recording.")
@output_option(help="Write the circuit to this circuit.json.")
@force_option
@json_option
def command(what: Path, frames: int | None, out: Output | None, as_json: bool) -> int:
    """Make the circuit of WHAT without training.

    WHAT is one of these. A rule, such as B36/S23, or a file with its table: the circuit is made from the table. A
    recording or samples, .gif, .npy, .npz, .rle or .cells: the simplest local rule that explains all pairs of states
    is found by induction. An image, or a preset of one: a lookup circuit, whose cells count their place. A run folder:
    the task of the run.

    The circuit is tested on all that it was made from, and the exit code is 1 if anything is wrong.

    Example: difflogic build B36/S23 -o highlife.json

    Example: difflogic build film.gif -o rule.json
    """
    from difflogic.actions.build import build

    found = build(what, frames)
    if out is not None:
        out.write(str(next(iter(found.files.values()))).encode())
    code = show(found, as_json, lambda: [] if out is None else [out.path])
    if out is not None and not as_json:
        echo("\n".join(next_lines(NEXT, out.path)))
    return code
