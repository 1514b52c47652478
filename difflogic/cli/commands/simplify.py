"""`difflogic simplify`: simplify a circuit, and prove that the result is equivalent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from difflogic.cli.options import PATH, circuit_options, force_option, json_option, options_of, output_option
from difflogic.cli.screen import sinks
from difflogic.cli.screen.echo import echo
from difflogic.cli.screen.result import next_lines, show
from difflogic.config.choices import EFFORTS
from difflogic.config.follow_ups import SimplifyRequest
from difflogic.config.values import Size

if TYPE_CHECKING:
    from difflogic.system.files import Output

NEXT = (
    ("difflogic simulate {0}", "a simulation on a large grid"),
    ("difflogic export {0} --format html", "a web page that runs it"),
    ("difflogic export {0} --format c", "a header for C"),
)
effort_option = click.option(
    "--effort",
    type=click.Choice(tuple(EFFORTS)),
    default="normal",
    show_default=True,
    help="high: search ten times as long for fewer gates, which may take minutes.",
)


@click.command("simplify")
@click.argument("circuit", type=PATH)
@circuit_options
@options_of("simplify", request=SimplifyRequest)
@effort_option
@output_option(help="Write the smaller circuit to this circuit.json.")
@force_option
@json_option
def command(circuit: Path, size: Size | None, out: Output | None, as_json: bool, **options: Any) -> int:
    """Simplify CIRCUIT: a run, or a file that contains a circuit.

    Only gates that read two inputs are counted; constants, pass-throughs and NOT are free. The result computes the same
    visible channels in every step for every initial state. This is proved at the end; the exit code is 1 if the proof
    fails.

    Three options allow smaller circuits, because the result must be the same in fewer cases only. With --from-start it
    is the same for the task's initial state, on grids of any size and for any order of updates, which is proved by
    induction. With --from-start and --size it is the same on a grid of that size with all cells updated in each
    step, which is proved by following both circuits until their states repeat. With --task it is the same on rollouts
    of the run's task, or for agents in 100 episodes, which is tested; without it, agents act the same, which is proved.

    Each pass is reported on standard error. Ctrl-C ends the search or the proof: the circuit found so far is printed
    and written, and the exit code is 130. CIRCUIT may also be a rule, in every form that `train --rule` takes, as in
    simulate, prove, export, report and show.

    Example: difflogic simplify runs/NAME -o small.json
    """
    from difflogic.actions.simplify import simplify
    from difflogic.model.cell_netlist import CellNetlist

    on_pass = (lambda _: None) if as_json else sinks.show_pass  # neither raises an error if Ctrl-C stops a pass
    result = simplify(circuit, size=None if size is None else (size.height, size.width), on_pass=on_pass, **options)
    if out is not None:  # before the result is shown, so that the circuit is saved when a user reads "stopped"
        out.write(str(next(iter(result.files.values()))).encode())
    code = show(result, as_json, lambda: [] if out is None else [out.path])
    if out is not None and not as_json:
        echo("\n".join(next_lines(NEXT if isinstance(result.netlist, CellNetlist) else NEXT[1:], out.path)))
    return code
