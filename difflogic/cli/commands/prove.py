"""`difflogic prove`: prove the claim of a run's task, or that two circuits are equivalent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from difflogic.cli.options import PATH, POSITIVE, circuit_options, force_option, grid_size, json_option, output_option
from difflogic.cli.screen.result import save, show
from difflogic.errors import UsageError
from difflogic.system.files import Output, inside

if TYPE_CHECKING:
    from difflogic.actions.result import ActionResult

CHECKERS = ("network", "difflogic", "berkeley-abc", "yosys")


@click.command("prove")
@click.argument("one", type=PATH, required=False)
@click.argument("other", type=PATH, required=False)
@click.option("--every-start", is_flag=True, help="Prove that every initial state ends in the task's target.")
@click.option("--size", type=grid_size, metavar="WIDTHxHEIGHT", help="The grid of the --every-start proof [the run's].")
@click.option("--seconds", type=POSITIVE, default=60.0, show_default=True, help="Time limit to find a counterexample.")
@click.option("--check", type=PATH, metavar="FILE", help="Prove the claim of this proof.json again.")
@output_option(help="Write the proof here [proof.json in the run folder].")
@force_option
@circuit_options
@click.option(
    "--checker",
    "--judge",
    "judges",
    type=click.Choice(CHECKERS),
    multiple=True,
    help="The program that decides. For two circuits, the option may be repeated [all]. For --every-start: difflogic "
    "or berkeley-abc [difflogic].",
)
@json_option
def command(
    one: Path | None, other: Path | None, check: Path | None, out: Output | None, as_json: bool, **options: Any
) -> int:
    """Prove what a run's circuit does for every initial state, or that two circuits are equivalent.

    For one run the claim fits the task: all initial states if they are random, the rollout if there is only one, or
    each neighbourhood of a rule. --every-start simulates the circuit from a grid in which every value is unknown:
    values that become known are the same for all initial states. If that is not enough, a SAT solver searches for an
    initial state that fails. --checker berkeley-abc uses ABC's model checker pdr instead. The command writes the proof,
    with the circuit, to proof.json. `--check proof.json` proves it again with the same checker.

    For two circuits ONE and OTHER, runs or files, the command proves that they compute the same next state of a cell.
    The checker `network` compares a run's trained network in the NumPy reference with its gates. `difflogic` tries all
    neighbourhoods of a channel with at most 20 inputs, and uses a SAT solver for others. `berkeley-abc` and `yosys`
    decide independently.

    The exit code is 1 if the claim is wrong, if the circuits differ, or if no checker could decide.

    Example: difflogic prove runs/NAME --every-start --size 64x64

    Example: difflogic prove runs/NAME --every-start --checker berkeley-abc

    Example: difflogic prove runs/NAME small.json
    """
    from difflogic.actions import prove as actions

    # Options for the other kind of proof are rejected, not silently ignored.
    judges, of_two = options["judges"], {name: options.pop(name) for name in ("periodic", "visible")}
    if one is not None and other is not None:
        of_run = {"--every-start": options["every_start"], "--size": options["size"], "--check": check, "--out": out}
        if unused := [name for name, value in of_run.items() if value]:
            raise UsageError(f"{unused[0]} is only for proofs of one run: omit it to compare two circuits.")
        return show(actions.prove(one, other, judges=judges, **of_two), as_json)
    if of_two["visible"]:
        raise UsageError("--visible is only for comparing two circuits: name two, or omit it.")
    if of_two["periodic"] is not None:
        raise UsageError("--periodic and --zero are only for comparing two circuits: a run has its own boundary.")
    if check is not None:
        if judges:
            raise UsageError("--check uses the checker that is named in the proof: omit --checker.")
        return show(actions.check(check, one, options["seconds"]), as_json)
    if one is None:
        raise UsageError("Nothing to prove: give a run, two circuits, or --check with a proof.json.")
    if judges not in ((), ("difflogic",), ("berkeley-abc",)):
        raise UsageError(
            f"--checker {judges[-1]} is only for comparing two circuits: name two. A run's claim has one checker, "
            "difflogic or, with --every-start, berkeley-abc."
        )
    result = actions.prove(one, **options)
    return show(result, as_json, lambda: save(result, "the proof is") if out is None else _write(result, out))


def _write(result: ActionResult, out: Output) -> list[Path]:
    """Write the proof to `out`, and any counterexample to files next to `out`; return the paths."""
    proof, *others = result.files.items()
    out.write(str(proof[1]).encode())
    stem, paths = Path(proof[0]).stem, [out.path]
    for name, content in others:
        path = out.path.with_name(name.replace(stem, out.path.stem, 1))
        paths.append(inside(path, path.parent))
        Output(paths[-1], force=True).write(content if isinstance(content, bytes) else content.encode())
    return paths
