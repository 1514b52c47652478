"""`difflogic simplify`: a smaller circuit, proved to be the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from difflogic.cli import passes
from difflogic.cli.options import circuit_options, json_option

if TYPE_CHECKING:
    from difflogic.circuits.reduction import Reduction
    from difflogic.circuits.simplify import Step

FAILED = 1


@click.command("simplify")
@click.argument("circuit", type=click.Path(path_type=Path))
@circuit_options
@click.option(
    "--from-start", is_flag=True, help="Keep what comes of the circuit's own start, on any grid, for ever; proved too."
)
@click.option("--task", "to_task", is_flag=True, help="Of a run: keep the trained behaviour alone, and nothing else.")
@click.option("--out", "-o", type=click.Path(path_type=Path), metavar="FILE", help="Write the circuit.json there.")
@json_option
def command(
    circuit: Path,
    periodic: bool | None,
    visible: int | None,
    from_start: bool,
    to_task: bool,
    out: Path | None,
    as_json: bool,
) -> int:
    """Make CIRCUIT smaller: a run, or a file that holds a circuit.

    Gates are counted that read two inputs; constants, pass-throughs and NOT are free. The result computes the same
    in its visible channels, in every step from every start, which is proved at the end (exit code 1 where it could
    not be). With --from-start it is the same in every step from its own start alone, on a grid of any size, whichever
    cells fire: that is proved too, by induction. With --task it shows the same only on rollouts of the run's task;
    that is verified, and is no proof. Each pass is told as it ends, on standard error.

    Example: difflogic simplify runs/NAME -o small.json
    """
    from difflogic.circuits import source
    from difflogic.circuits.reduction import reduced
    from difflogic.circuits.simplify import silent

    tell = silent if as_json else passes.tell
    reduction = reduced(source.load(circuit, periodic, visible), from_start, to_task, tell)
    if out is not None:
        from difflogic import files, netlist_json

        files.write_atomically(out, netlist_json.to_json(reduction.netlist).encode())
    if as_json:
        click.echo(json.dumps(reduction.report() | {"out": None if out is None else str(out)}))
    else:
        _show(reduction, out)
    return 0 if reduction.proved else FAILED


WORDS = {True: "Proved equal", False: "NOT EQUAL, which is an error in difflogic", None: "Not proved equal"}


def _show(reduction: Reduction, out: Path | None) -> None:
    from difflogic.circuits.convert import gate_count, gates_once

    given, found, netlist = reduction.given, reduction.found, reduction.netlist
    paper = "" if given.paper_gates is None else f"; active gates as the paper counts them: {given.paper_gates}"
    click.echo(f"{given.kind}: {gate_count(given.netlist)} two-input gates per cell{paper}")
    _table(reduction.steps)
    if found.note:
        click.echo(found.note)
    click.echo(f"{WORDS[found.verdict.equal]} in its visible channels: {found.verdict.how}.")
    if reduction.reached is not None:
        verdict = reduction.reached.verdict
        click.echo(f"--from-start: {WORDS[verdict.equal]} from its own start on, and there alone: {verdict.how}.")
    if reduction.pruned is not None:
        click.echo(
            f"--task: shows the same as before on {reduction.pruned.rollouts} rollouts of the task. Elsewhere it "
            "differs: other starts, sizes, steps or damage."
        )
    count, once = gate_count(netlist), gates_once(netlist)
    click.echo(f"{count} gates, channels {_names(netlist.origin)}" + (f": {out}" if out else "."))
    if once < count:
        click.echo(f"As the paper counts perception, gates that see one channel alone once for all channels: {once}.")


def _names(origin: tuple[int, ...]) -> str:
    """Channel numbers, few enough for a line."""
    names = ", ".join(map(str, origin[:12]))
    return names if len(origin) <= 12 else f"{names}, ... ({len(origin)})"


def _table(steps: list[Step]) -> None:
    from difflogic.cli import table

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
