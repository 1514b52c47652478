"""`difflogic check-grad`: are the gradients right, on the circuit of a run?"""

from __future__ import annotations

import json
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from difflogic.cli.options import PATH, json_option, tell_choice
from difflogic.cli.screen import table
from difflogic.errors import UsageError

if TYPE_CHECKING:
    from difflogic.devices.check_gradients import Pair, Subject

FAILED = 1


@click.command("check-grad")
@click.argument("run", required=False, type=PATH)
@click.option("--small", is_flag=True, help="Without RUN: the model of 1496 gates instead of 3040.")
@click.option("--batch", type=int, help="The number of start grids [the run's].")
@click.option(
    "--engine",
    "engines",
    multiple=True,
    metavar="gpu[:INDEX|:NAME]|cpu|jax|torch",
    help="Check this engine. May be repeated. Default: all installed ones. The extra bench installs jax and torch.",
)
@click.option(
    "--samples",
    type=click.IntRange(min=0),
    default=8,
    show_default=True,
    help="The number of logits to check by finite differences. Each takes two rollouts in float64.",
)
@json_option
def command(
    run: Path | None, small: bool, batch: int | None, engines: tuple[str, ...], samples: int, as_json: bool
) -> int:
    """Compare the gradients of the engines that are here, on the circuit of RUN and a fresh batch.

    RUN is a run folder or a checkpoint; of a population, its best model. Without RUN the command uses the
    checkerboard before its first epoch. It compares the engines with the reference in float32 and float64, with
    finite differences of the float64 loss for some logits, and with the model in JAX and PyTorch if these are
    installed. The exit code is 1 if two gradients differ by more than 1e-4 of the largest gradient of a layer, and
    by more than float32 rounding explains.

    Example: difflogic check-grad
    """
    from difflogic.devices import check_gradients

    subject = _subject(run, small, batch)
    if not as_json:
        click.echo(_describe(subject, run))
    found = check_gradients.find(subject, engines)
    if not as_json:
        click.echo("\n".join(f"{name}: {text}" for name, text in found.described.items()))
    pairs = check_gradients.compare(subject, found.found, samples)
    passed = all(pair.passed for pair in pairs)
    if as_json:
        # An engine that gives NaN or infinity has failed; the report still has to be JSON.
        rows = [
            asdict(pair) | {"error": pair.error if isfinite(pair.error) else None, "passed": pair.passed}
            for pair in pairs
        ]
        report: dict[str, Any] = {"passed": passed, "epoch": subject.epoch, "pairs": rows}
        click.echo(json.dumps(report | {"described": found.described, "skipped": found.skipped}))
    else:
        _show(pairs, found.skipped, passed)
    return 0 if passed else FAILED


def _subject(run: Path | None, small: bool, batch: int | None) -> Subject:
    from difflogic.config import presets
    from difflogic.devices.check_gradients import Subject
    from difflogic.runs import chosen

    if run is not None:
        if small:
            raise UsageError("--small says which circuit to start from, but RUN brings its own: give one of them.")
        found = chosen.load(run)
        tell_choice(found.told)
        return Subject.loaded(found.model, batch, found.data())
    config = presets.checkerboard(small)
    return Subject.start(config if batch is None else config.with_(train={"batch": batch}))


def _describe(subject: Subject, run: Path | None) -> str:
    where = "before the first epoch" if run is None else f"{run} after epoch {subject.epoch}"
    return (
        f"{subject.config.name}, {where}: {subject.circuit.gates} gates, {subject.config.task.steps} steps, "
        f"batch {subject.config.train.batch}"
    )


def _show(pairs: list[Pair], skipped: dict[str, str], passed: bool) -> None:
    headers = ("gradients of", "and of", "largest difference", "allowed", "in layer", "")
    rows = [
        (pair.one, pair.other, f"{pair.error:.1e}", f"{pair.allowed:.1e}", pair.layer, "ok" if pair.passed else "FAIL")
        for pair in pairs
    ]
    table.show(headers, rows)
    click.echo("Differences are shares of the layer's largest gradient.")
    for name, why in skipped.items():
        click.echo(f"Not compared: {name}. {why}")
    click.echo("All agree." if passed else "NOT ALL AGREE: do not train on an engine that fails; see difflogic doctor.")
