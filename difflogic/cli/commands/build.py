"""`difflogic build`: a circuit made without training."""

from pathlib import Path
from typing import Any

import click

from difflogic.cli.commands.simplify import NEXT, effort_option, ignored
from difflogic.cli.options import PATH, film_options, force_option, forced, json_option, options_of, set_option
from difflogic.cli.request import parse, said
from difflogic.cli.screen import sinks
from difflogic.cli.screen.echo import echo
from difflogic.cli.screen.result import next_lines, show
from difflogic.errors import UsageError
from difflogic.system.files import Output

OTHER_TARGETS = ("target", "rule", "rule_table", "data")
"""Options of a target for which WHAT stands."""
NEXT_OF_FOLDER = (("difflogic render {0} -o film.gif", "a film of it"), *NEXT)


@click.command("build")
@click.argument("what", type=PATH)
@options_of("target", without=OTHER_TARGETS)
@film_options
@set_option
@effort_option
@click.option(
    "--out", "-o", type=PATH, metavar="DIR|FILE", help="A new run folder; or, ending in .json, the circuit alone."
)
@force_option
@json_option
def command(what: Path, out: Path | None, as_json: bool, **asked: Any) -> int:
    """Make the circuit of WHAT without training, simplify it, and prove that it is right.

    WHAT is one of these. A rule, such as B36/S23, or a file with its table: the circuit is made from the table. A
    recording, samples or a pattern, .gif, .npy, .npz or RLE: the simplest local rule that explains all pairs of states
    is found by induction. An image, or a preset of one: a lookup circuit, whose cells count their place. A run folder:
    the task of the run.

    The circuit of a rule or an image is proved to be right. An induced rule is tested on all pairs of states; a rule
    induced from four fifths of them is tested on the others. The exit code is 1 if anything is wrong. Ctrl-C ends the
    simplification with the circuit found so far.

    Example: difflogic build B36/S23 -o highlife

    Example: difflogic build film.gif -o rule.json

    Example: difflogic build glider.cells --film-rule B3/S23
    """
    from difflogic.actions.build import build

    file = Output(out, forced()) if out is not None and out.suffix == ".json" else None
    if out is not None and file is None and out.exists():
        raise UsageError(f"{out} exists already: choose another --out.")
    options = said(asked) | {name: asked[name] for name in ("film_rule", "film_frames", "effort")}
    told = ignored if as_json else sinks.show_pass
    made = build(what, on_pass=told, set=parse(asked["assignments"]) or None, **options)
    if file is not None:  # before it is shown: a reader of "stopped" has the circuit
        file.write(str(made.files["circuit.json"]).encode())
    elif out is not None:
        made.save(out)
    code = show(made, as_json, lambda: [] if out is None else [out])
    if out is not None and not as_json:
        echo("\n".join(next_lines(NEXT_OF_FOLDER if file is None else NEXT, out)))
    return code
