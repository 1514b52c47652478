"""`difflogic prove`: do two circuits compute the same?"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from difflogic.cli.options import circuit_options, json_option, tell_choice

if TYPE_CHECKING:
    from difflogic.circuits.synthesis.prove import Counterexample, Verdict

FAILED = 1

WORDS = {True: "equal", False: "DIFFERENT", None: "undecided"}


@click.command("prove")
@click.argument("one", type=click.Path(path_type=Path))
@click.argument("other", type=click.Path(path_type=Path))
@circuit_options
@click.option(
    "--judge",
    "judges",
    type=click.Choice(["network", "difflogic", "berkeley-abc", "yosys"]),
    multiple=True,
    help="Ask this judge; may be repeated. Default: all.",
)
@json_option
def command(
    one: Path, other: Path, periodic: bool | None, visible: int | None, judges: tuple[str, ...], as_json: bool
) -> int:
    """Prove that two circuits compute the same next state of a cell, or show where they differ.

    ONE and OTHER are runs, or files that hold a circuit. The judges: network, of a run, compares its trained network
    in the NumPy reference with the gates taken from it; difflogic tries all neighbourhoods of a channel that depends
    on at most 20 inputs, and asks a SAT solver beyond; berkeley-abc and yosys, where they are installed, decide on
    their own. Exit code 1 where the two differ or nobody could decide.

    Example: difflogic prove runs/NAME small.json
    """
    from difflogic.circuits.readers import source
    from difflogic.circuits.synthesis.prove import network, prove

    pair = [source.load(path, periodic, visible) for path in (one, other)]
    for each in pair:
        tell_choice(each.told)
    verdicts = [network(each.circuit, each.netlist) for each in pair if each.circuit and _asked("network", judges)]
    others = [name for name in ("difflogic", "berkeley-abc", "yosys") if _asked(name, judges)]
    verdicts += prove(pair[0].netlist, pair[1].netlist, others)
    equal = _together(verdicts)
    boundaries = [each.netlist.periodic for each in pair]
    if as_json:
        report = {"equal": equal, "same_boundary": boundaries[0] == boundaries[1]}
        click.echo(json.dumps(report | {"verdicts": [asdict(verdict) for verdict in verdicts]}))
    else:
        _show(verdicts, equal, boundaries)
    return 0 if equal else FAILED


def _asked(name: str, judges: tuple[str, ...]) -> bool:
    return not judges or name in judges


def _together(verdicts: list[Verdict]) -> bool | None:
    """False where any judge found a difference, True where none did and one of the proving judges is sure."""
    if any(verdict.equal is False for verdict in verdicts):
        return False
    return True if any(verdict.equal and verdict.proves for verdict in verdicts) else None


def _show(verdicts: list[Verdict], equal: bool | None, boundaries: list[bool]) -> None:
    from difflogic.cli.screen import table

    table.show(("judge", "verdict", "how"), [(each.judge, WORDS[each.equal], each.how) for each in verdicts])
    for each in verdicts:
        if each.counterexample is not None:
            click.echo(_counterexample(each.counterexample))
    if boundaries[0] != boundaries[1]:
        click.echo("Note: one of the two is periodic and the other is not; cells at the border of a grid see that.")
    sentences = {
        True: "Equal: the two compute the same next state from every neighbourhood.",
        False: "Different.",
        None: "Undecided: no judge could prove it.",
    }
    click.echo(sentences[equal])


def _counterexample(found: Counterexample) -> str:
    ones = ", ".join(found.ones) or "none"
    values = "; ".join(f"channel {channel}: {one} and {other}" for channel, one, other in found.outputs)
    return f"Counter-example, evaluated in both: inputs that are 1: {ones}. Next state, {values}."
