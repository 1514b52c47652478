"""`difflogic simplify`: a smaller circuit, proved to be the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from difflogic.cli.commands import policy_runs
from difflogic.cli.options import (
    PATH,
    circuit_options,
    force_option,
    grid_size,
    json_option,
    output_option,
    tell_choice,
)
from difflogic.cli.screen import sinks, table

if TYPE_CHECKING:
    from difflogic.circuits.readers.source import LoadedCircuit
    from difflogic.circuits.synthesis.pipeline import PipelineResult
    from difflogic.circuits.synthesis.simplify import PassReport
    from difflogic.system.files import Output

FAILED = 1
INTERRUPTED = 130


@click.command("simplify")
@click.argument("circuit", type=PATH)
@circuit_options
@click.option(
    "--from-start",
    is_flag=True,
    help="Only keep the behaviour from the task's start, on any grid and for ever. This is proved.",
)
@click.option(
    "--size",
    type=grid_size,
    metavar="WIDTHxHEIGHT",
    help="With --from-start: only on a grid of this size, with all cells updated in each step. This is proved.",
)
@click.option(
    "--task",
    "to_task",
    is_flag=True,
    help="Only keep the trained behaviour. This is tested, not proved. CIRCUIT must be a run.",
)
@output_option(help="Write the smaller circuit to this circuit.json.")
@force_option
@json_option
def command(
    circuit: Path,
    periodic: bool | None,
    visible: int | None,
    from_start: bool,
    size: tuple[int, int] | None,
    to_task: bool,
    out: Output | None,
    as_json: bool,
) -> int:
    """Make CIRCUIT smaller: a run, or a file that holds a circuit.

    The command counts gates that read two inputs. Constants, pass-throughs and NOT are free. The result computes
    the same visible channels in every step from every start. This is proved at the end; the exit code is 1 if the
    proof fails.

    Three options allow smaller circuits, because the result has to be the same in fewer cases. With --from-start it
    is the same from the task's own start, on grids of any size and for any order of updates. This is proved by
    induction. With --from-start and --size it is the same on a grid of that size with all cells updated in each
    step. This is proved by following both circuits until their states repeat. With --task it is the same on rollouts
    of the run's task. This is tested, not proved.

    Each pass is reported on standard error. Ctrl-C ends the search or the proof. The circuit found so far is then
    printed and written, and the exit code is 130.

    For agents or a controller.json the result gives the same action for every observation, which is proved. With
    --task it gives the same actions in 100 episodes, and is tested in 100 others.

    Example: difflogic simplify runs/NAME -o small.json
    """
    from difflogic.circuits.readers import source
    from difflogic.circuits.synthesis.pipeline import simplify

    if (controller := source.controller(circuit)) is not None:
        return policy_runs.simplify(controller, to_task, out, as_json)
    loaded = source.load(circuit, periodic, visible)
    tell_choice(loaded.told)
    task = loaded.task if to_task else None
    result = simplify(loaded.netlist, from_start, task, ignored if as_json else sinks.show_pass, size)
    if out is not None:
        from difflogic.model import netlist_json

        out.write(netlist_json.to_json(result.netlist).encode())
    if as_json:
        click.echo(
            json.dumps(result.report(loaded.kind, loaded.paper_gates) | {"out": None if out is None else str(out)})
        )
    else:
        _show(loaded, result, out)
    if result.stopped:
        return INTERRUPTED
    return 0 if result.proved else FAILED


def ignored(step: PassReport) -> None:
    """Report nothing, and keep what Ctrl-C stopped."""


WORDS = {True: "Proved equal", False: "NOT EQUAL, which is an error in difflogic", None: "Not proved equal"}


def _show(given: LoadedCircuit, result: PipelineResult, out: Output | None) -> None:
    from difflogic.circuits.export.text import channel_names
    from difflogic.circuits.synthesis.convert import gate_count, gates_once

    found, netlist = result.found, result.netlist
    paper = "" if given.paper_gates is None else f"; active gates as the paper counts them: {given.paper_gates}"
    click.echo(f"{given.name}: {gate_count(given.netlist)} two-input gates per cell{paper}")
    _table(result.steps)
    if found.note:
        click.echo(found.note)
    if result.stopped:
        click.echo("Stopped by Ctrl-C: this is the smallest circuit until then.")
    click.echo(f"{WORDS[found.verdict.equal]} in its visible channels: {found.verdict.how}.")
    if result.reachable is not None:
        verdict = result.reachable.verdict
        click.echo(f"--from-start: {WORDS[verdict.equal]} from its own start on, and there alone: {verdict.how}.")
    if result.pruned is not None:
        # One rollout is what a task with one start has, if all cells are updated in each step.
        count = result.pruned.rollouts
        rollouts = f"{count} rollouts of the task" if count > 1 else "the task's only rollout"
        click.echo(
            f"--task: shows the same as before on {rollouts}. Elsewhere it differs: other starts, sizes, steps or "
            "damage."
        )
    count, once = gate_count(netlist), gates_once(netlist)
    click.echo(f"{count} gates, channels {channel_names(netlist.origin)}" + (f": {out}" if out else "."))
    if once < count:
        click.echo(f"As the paper counts perception, gates that see one channel alone once for all channels: {once}.")


def _table(steps: list[PassReport]) -> None:
    rows = [
        (
            step.name,
            str(step.gates[0]),
            str(step.gates[1]),
            "" if step.channels[0] == step.channels[1] else f"{step.channels[0]} to {step.channels[1]}",
            f"{step.seconds:.2f} s",
        )
        for step in steps
    ]
    table.show(("step", "gates before", "after", "channels", "time"), rows)
