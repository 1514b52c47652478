"""`difflogic build`: build a circuit without training."""

from pathlib import Path
from typing import Any

import click

from difflogic.cli.commands.simplify import NEXT, effort_option
from difflogic.cli.options import PATH, force_option, forced, json_option, options_of, recording_options, set_option
from difflogic.cli.request import parse, request_fields
from difflogic.cli.screen import sinks
from difflogic.cli.screen.echo import echo
from difflogic.cli.screen.result import next_lines, show
from difflogic.errors import UsageError
from difflogic.system.files import Output

OTHER_TARGETS = ("target", "rule", "rule_table", "data")
"""Target options of other commands whose values this command takes as WHAT."""
NEXT_OF_FOLDER = (("difflogic render {0} -o run.gif", "an animation"), *NEXT)


@click.command("build")
@click.argument("what", type=PATH)
@options_of("target", without=OTHER_TARGETS)
@recording_options
@set_option
@effort_option
@click.option("--out", "-o", type=PATH, metavar="DIR|FILE", help="A new run folder, or a .json file for the circuit.")
@force_option
@json_option
def command(what: Path, out: Path | None, as_json: bool, **options: Any) -> int:
    """Build the circuit of WHAT without training, simplify it, and prove that it is correct.

    WHAT is a rule, such as B36/S23 or a file with its table, which is converted to a circuit; or a recording, samples
    or a pattern (.gif, .npy, .npz or RLE), for which rule induction finds the simplest local rule that explains all
    pairs of states; or an image or the preset of one, for which a lookup circuit is built, in which cells count their
    position; or a run folder, for the task of the run.

    The circuit of a rule or an image is proved to be correct. An induced rule is tested on all pairs of states; a rule
    induced from four fifths of them is tested on the rest. The exit code is 1 if a proof or a test fails. Ctrl-C stops
    the simplification, and keeps the circuit found so far.

    Example: difflogic build B36/S23 -o highlife

    Example: difflogic build recording.gif -o rule.json

    Example: difflogic build glider.cells --recording-rule B3/S23
    """
    from difflogic.actions.build import build

    file = Output(out, forced()) if out is not None and out.suffix == ".json" else None
    if out is not None and file is None and out.exists():
        raise UsageError(f"{out} already exists: choose another --out.")
    fields = request_fields(options) | {name: options[name] for name in ("film_rule", "film_frames", "effort")}
    on_pass = (lambda _: None) if as_json else sinks.show_pass  # neither raises an error if Ctrl-C stops a pass
    result = build(what, on_pass=on_pass, set=parse(options["assignments"]) or None, **fields)
    if file is not None:  # before the result is shown, so that the circuit is saved when a user reads "stopped"
        file.write(str(result.files["circuit.json"]).encode())
    elif out is not None:
        result.save(out)
    code = show(result, as_json, lambda: [] if out is None else [out])
    if out is not None and not as_json:
        echo("\n".join(next_lines(NEXT_OF_FOLDER if file is None else NEXT, out)))
    return code
