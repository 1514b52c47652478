"""`difflogic prove`: what holds of a circuit for certain; and do two circuits compute the same?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from difflogic.cli.options import PATH, circuit_options, force_option, grid_size, json_option, output_option
from difflogic.cli.screen.result import kept, show
from difflogic.errors import UsageError
from difflogic.system.files import Output, inside

if TYPE_CHECKING:
    from difflogic.actions.result import ActionResult

JUDGES = ("network", "difflogic", "berkeley-abc", "yosys")


@click.command("prove")
@click.argument("one", type=PATH, required=False)
@click.argument("other", type=PATH, required=False)
@click.option("--every-start", is_flag=True, help="Prove that every start of the grid ends in the task's target.")
@click.option("--size", type=grid_size, metavar="WIDTHxHEIGHT", help="The grid of the --every-start proof [the run's].")
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=60.0,
    show_default=True,
    help="Stop the search for a counterexample after this many seconds. The result is then inconclusive.",
)
@click.option("--check", type=PATH, metavar="FILE", help="Prove the claim of this proof.json again.")
@output_option(help="Write the proof here [proof.json in the run folder].")
@force_option
@circuit_options
@click.option(
    "--judge",
    "judges",
    type=click.Choice(JUDGES),
    multiple=True,
    help="The program that decides. For two circuits: may be repeated [all]. For --every-start: difflogic or "
    "berkeley-abc [difflogic].",
)
@json_option
def command(
    one: Path | None, other: Path | None, check: Path | None, out: Output | None, as_json: bool, **asked: Any
) -> int:
    """Prove what a run's circuit does from every start, or that two circuits compute the same.

    For one run the claim fits the task: every start if starts are random, the rollout if there is only one, or each
    neighbourhood of a rule. --every-start simulates the circuit from a grid in which every value is unknown: values
    that become known are the same for all starts. If that is not enough, a SAT solver searches for a start that goes
    wrong. --judge berkeley-abc uses ABC's model checker pdr instead. The command writes the proof, with the circuit, to
    proof.json. `--check proof.json` proves it again with the same judge.

    For two circuits ONE and OTHER, runs or files: do they compute the same next state of a cell? The judge `network`
    compares a run's trained network in the NumPy reference with its gates. `difflogic` tries all neighbourhoods of a
    channel with at most 20 inputs, and uses a SAT solver for others. `berkeley-abc` and `yosys` decide independently.

    The exit code is 1 if the claim is wrong, if the circuits differ, or if no judge could decide.

    Example: difflogic prove runs/NAME --every-start --size 64x64

    Example: difflogic prove runs/NAME --every-start --judge berkeley-abc

    Example: difflogic prove runs/NAME small.json
    """
    # Options of the other question are refused, and not silently ignored.
    from difflogic.actions import prove as actions

    judges, compared = asked["judges"], {name: asked.pop(name) for name in ("periodic", "visible")}
    if one is not None and other is not None:
        of_run = {"--every-start": asked["every_start"], "--size": asked["size"], "--check": check, "--out": out}
        if given := [name for name, value in of_run.items() if value]:
            raise UsageError(f"{given[0]} is only for proofs of one run: leave it out to compare two circuits.")
        return show(actions.prove(one, other, judges=judges, **compared), as_json)
    if compared["visible"]:
        raise UsageError("--visible is only for comparing two circuits: name two, or leave it out.")
    if compared["periodic"] is not None:
        raise UsageError(
            "--periodic and --zero are only for comparing two circuits: a run is proved with its own boundary."
        )
    if check is not None:
        if judges:
            raise UsageError("--check asks the judge that the proof names: leave --judge out.")
        return show(actions.check(check, one, asked["seconds"]), as_json)
    if one is None:
        raise UsageError("There is nothing to prove: name a run, two circuits, or --check with a proof.json.")
    if judges not in ((), ("difflogic",), ("berkeley-abc",)):
        raise UsageError(
            f"--judge {judges[-1]} is only for comparing two circuits: name two. A run's claim has one judge, "
            "difflogic or, of every start, berkeley-abc."
        )
    found = actions.prove(one, **asked)
    return show(found, as_json, lambda: kept(found, "the proof is") if out is None else _written(found, out))


def _written(found: ActionResult, out: Output) -> list[Path]:
    """Write the proof to `out`, and a counterexample beside it, whose files begin with the same name."""
    proof, *others = found.files.items()
    out.write(str(proof[1]).encode())
    stem, written = Path(proof[0]).stem, [out.path]
    for name, content in others:
        beside = out.path.with_name(name.replace(stem, out.path.stem, 1))
        written.append(inside(beside, beside.parent))
        Output(written[-1], force=True).write(content if isinstance(content, bytes) else content.encode())
    return written
