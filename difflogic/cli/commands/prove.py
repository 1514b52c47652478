"""`difflogic prove`: what holds of a circuit for certain; and do two circuits compute the same?"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
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
from difflogic.cli.screen import table
from difflogic.errors import RunFolderError, UsageError

if TYPE_CHECKING:
    from difflogic.circuits.synthesis.prove import Counterexample, Equivalence
    from difflogic.model.controller import Controller
    from difflogic.system.files import Output

FAILED = 1

JUDGES = ("difflogic", "berkeley-abc", "yosys")
WORDS = {True: "equal", False: "DIFFERENT", None: "undecided"}


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
    type=click.Choice(["network", *JUDGES]),
    multiple=True,
    help="The program that decides. For two circuits: may be repeated [all]. For --every-start: difflogic or "
    "berkeley-abc [difflogic].",
)
@json_option
def command(
    one: Path | None,
    other: Path | None,
    every_start: bool,
    size: tuple[int, int] | None,
    seconds: float,
    check: Path | None,
    out: Output | None,
    periodic: bool | None,
    visible: int | None,
    judges: tuple[str, ...],
    as_json: bool,
) -> int:
    """Prove what a run's circuit does from every start, or that two circuits compute the same.

    For one run: --every-start simulates the circuit from a grid in which every value is unknown. Values that become
    known are the same for all starts. If that is not enough, a SAT solver searches for a start that goes wrong.
    --judge berkeley-abc uses ABC's model checker pdr instead. It decides whether the picture is right after the
    task's steps, and for ever after, from every start. Without --every-start the claim fits the task: every start
    if starts are random, the rollout if there is only one, or each neighbourhood of a rule. The command writes the
    proof, with the circuit, to proof.json. `--check proof.json` proves it again with the same judge.

    For two circuits ONE and OTHER, runs or files: do they compute the same next state of a cell? The judge
    `network` compares a run's trained network in the NumPy reference with its gates. `difflogic` tries all
    neighbourhoods of a channel with at most 20 inputs, and uses a SAT solver for others. `berkeley-abc` and `yosys`
    decide independently if they are installed.

    The exit code is 1 if the claim is wrong, if the circuits differ, or if no judge could decide.

    Example: difflogic prove runs/NAME --every-start --size 64x64

    Example: difflogic prove runs/NAME --every-start --judge berkeley-abc

    Example: difflogic prove runs/NAME small.json
    """
    # One command for two questions. Options of the other question are refused, and not silently ignored.
    if one is not None and other is not None:
        of_run = {"--every-start": every_start, "--size": size, "--check": check, "--out": out}
        if given := [name for name, value in of_run.items() if value]:
            raise UsageError(f"{given[0]} is only for proofs of one run: leave it out to compare two circuits.")
        return _compare(one, other, periodic, visible, judges, as_json)
    if visible:
        raise UsageError("--visible is only for comparing two circuits: name two, or leave it out.")
    if periodic is not None:
        raise UsageError(
            "--periodic and --zero are only for comparing two circuits: a run is proved with its own boundary."
        )
    if check is not None and judges:
        raise UsageError("--check asks the judge that the proof names: leave --judge out.")
    if check is not None:
        return _check(check, one, seconds, as_json)
    if one is None:
        raise UsageError("There is nothing to prove: name a run, two circuits, or --check with a proof.json.")
    if judges not in ((), ("difflogic",), ("berkeley-abc",)):
        raise UsageError(
            f"--judge {judges[-1]} is only for comparing two circuits: name two. A run's claim has one judge, "
            "difflogic or, of every start, berkeley-abc."
        )
    return _prove(one, every_start, size, seconds, (judges or JUDGES)[0], out, as_json)


def _prove(
    run: Path,
    every_start: bool,
    size: tuple[int, int] | None,
    seconds: float,
    judge: str,
    out: Output | None,
    as_json: bool,
) -> int:
    from difflogic.evaluation import proof as proofs
    from difflogic.evaluation import proof_file, trained_circuit

    if policy_runs.is_policy(run):
        raise UsageError(f"A controller is proved equal to another: name that too, as in `difflogic prove {run} FILE`.")
    # A circuit's file says what a cell does, and not what it was trained for, which is what is claimed.
    if run.is_file() and run.suffix == ".json":
        raise UsageError(f"The proof of one circuit needs its run, got the file {run}: name a run, or two circuits.")
    trained = trained_circuit.load(run)
    tell_choice(trained.told)
    found = proofs.decide(proofs.of_run(trained, every_start, size), seconds, judge)
    click.echo(found.to_json() if as_json else found.text, nl=not as_json)
    try:
        written = proof_file.keep(found, trained.folder, out)
    except RunFolderError as error:  # it may be one that is only to be read: what was found was shown all the same
        click.echo(f"Warning: the proof is not kept in the run folder. {error}", err=True)
        written = []
    if not as_json:
        for path in written:
            click.echo(f"Written: {path}")
    return 0 if found.proved else FAILED


def _check(file: Path, run: Path | None, seconds: float, as_json: bool) -> int:
    from difflogic.circuits.readers import source
    from difflogic.evaluation import proof as proofs
    from difflogic.evaluation import proof_file

    claimed = proof_file.read(file)
    if run is not None and proofs.fingerprint(source.load(run).netlist) != proofs.fingerprint(claimed.claim.netlist):
        raise UsageError(f"{file} is about another circuit than that of {run}: their hashes differ.")
    # Nothing that the file says of its proof is believed: the claim is proved anew, and the two results are compared.
    again = proofs.decide(claimed.claim, seconds, claimed.judge)
    lies = proofs.lies(claimed, again)
    if as_json:
        click.echo(json.dumps({"confirmed": not lies, "differs": lies, "text": again.text}))
    else:
        verdict = f"NOT confirmed: {', '.join(lies)} of {file} differ" if lies else "Confirmed"
        click.echo(f"{verdict}. {again.text}")
    return FAILED if lies or not again.proved else 0


def _compare(
    one: Path, other: Path, periodic: bool | None, visible: int | None, judges: tuple[str, ...], as_json: bool
) -> int:
    from difflogic.circuits.readers import source
    from difflogic.circuits.synthesis.prove import network, prove, together

    asked = judges or ("network", *JUDGES)
    held = [source.controller(path) for path in (one, other)]
    if held[0] is not None and held[1] is not None:
        return _compare_controllers(held[0], held[1], asked, as_json)
    if any(each is not None for each in held):
        raise UsageError("A controller is compared with a controller, and not with a cell's circuit.")
    pair = [source.load(path, periodic, visible) for path in (one, other)]
    for each in pair:
        tell_choice(each.told)
    # The trained network itself is a judge too, where there is one: the netlist was only taken from it.
    verdicts = [network(each.circuit, each.netlist) for each in pair if each.circuit and "network" in asked]
    verdicts += prove(pair[0].netlist, pair[1].netlist, [name for name in JUDGES if name in asked])
    equal = together(verdicts)
    boundaries = [each.netlist.periodic for each in pair]
    if as_json:
        report = {"equal": equal, "same_boundary": boundaries[0] == boundaries[1]}
        click.echo(json.dumps(report | {"verdicts": [asdict(verdict) for verdict in verdicts]}))
    else:
        _show(verdicts, equal, "compute the same next state from every neighbourhood", "inputs that are 1", boundaries)
    return 0 if equal else FAILED


def _compare_controllers(one: Controller, other: Controller, asked: tuple[str, ...], as_json: bool) -> int:
    from difflogic.circuits.synthesis import controller as synthesis
    from difflogic.circuits.synthesis.prove import together

    others = [name for name in JUDGES if name in asked]
    if not others:
        raise UsageError(f"--judge network is only for automata: controllers can be compared by {', '.join(JUDGES)}.")
    verdicts = synthesis.prove(one, other, others)
    equal = together(verdicts)
    if as_json:
        click.echo(json.dumps({"equal": equal, "verdicts": [asdict(verdict) for verdict in verdicts]}))
    else:
        _show(verdicts, equal, "take the same action at every observation", "thresholds that are reached")
    return 0 if equal else FAILED


def _show(
    verdicts: list[Equivalence], equal: bool | None, claim: str, ones: str, boundaries: Sequence[bool] = ()
) -> None:
    table.show(("judge", "verdict", "run"), [(each.judge, WORDS[each.equal], each.how) for each in verdicts])
    for each in verdicts:
        if each.counterexample is not None:
            click.echo(_counterexample(each.counterexample, ones))
    # Judges compare one cell with its neighbours as inputs. What lies beyond the border is not a part of that.
    if len(set(boundaries)) > 1:
        click.echo("Note: one of the two is periodic and the other is not; cells at the border of a grid see that.")
    sentences = {True: f"Equal: the two {claim}.", False: "Different.", None: "Undecided: no judge could prove it."}
    click.echo(sentences[equal])


def _counterexample(found: Counterexample, what: str) -> str:
    ones = ", ".join(found.ones) or "none"
    values = "; ".join(f"{name}: {one} and {other}" for name, one, other in found.outputs)
    return f"Counter-example, evaluated in both: {what}: {ones}. In each, {values}."
