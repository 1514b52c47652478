"""`difflogic sweep`: many runs that differ in some fields."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from difflogic.cli import options as shared
from difflogic.cli.request import parse, written
from difflogic.cli.training import SIGNAL_BASE
from difflogic.errors import UsageError

if TYPE_CHECKING:
    from difflogic.sweeps import Spec

ENTRIES = ("metric", "method", "sampler_seed", "ahead", "recipe", "population", "restarts", "until_solved", "within")
"""Options that are entries of a specification."""
DESCRIBING = ("over", *ENTRIES, "assignments", "epochs", "config_file", "out")
"""What a sweep that goes on has already."""


@click.command("sweep")
@click.argument("what", metavar="[PRESET|SPEC.toml]", required=False)
@shared.config_option
@shared.set_option
@shared.sweep_options
@click.option("--recipe", type=click.Choice(("paper", "robust")), help="The recipe, as for train [paper].")
@click.option("--epochs", type=int, help="Epochs of each trial.")
@click.option("--population", type=int, metavar="M", help="Seeds that each trial trains at once [1].")
@click.option("--restarts", type=int, metavar="N", help="The most restarts of a trial, as for train.")
@shared.until_options
@click.option("--on", default="local", metavar="local|ray[:HOST:PORT]", help="This machine, or a Ray cluster [local].")
@click.option(
    "--devices", metavar="LIST", help="The devices, for example gpu:0,gpu:1 or cpu [the hardware GPUs, or else cpu]."
)
@click.option("--workers", type=click.IntRange(1), metavar="N", help="Processes on the CPU [one for each core].")
@click.option("--out", "-o", type=shared.PATH, metavar="DIR", help="A new folder [runs/sweep-NAME-DATE-TIME].")
@click.option("--resume", type=shared.PATH, metavar="DIR", help="Continue the sweep in this folder.")
@shared.json_option
def command(what: str | None, resume: Path | None, trials: int | None, as_json: bool, **options: Any) -> int:
    """Train many runs that differ in some fields, and compare them.

    Give a PRESET of automata or agents, --config FILE, or the file of a sweep. Each trial is a run folder. The
    command writes tables, a page and the best run. Ctrl-C saves and stops it. --resume continues it bit for
    bit, and extends it if --trials is larger. Metrics: tts is the cost of a solution in billions of gate
    evaluations, or in steps of agents. hard_loss counts wrong values. gates counts active gates of solved trials.
    return is the mean return of agents.

    Example: difflogic sweep checkerboard-small --over optimizer.lr=0.05,0.1,0.2 --over seed=0..7 --metric tts
    """
    from difflogic.cli.screen import sinks
    from difflogic.cli.screen.sweeps import SweepReporter
    from difflogic.sweeps import resume_sweep, sweep

    described = None
    if resume is None:
        described = _described(what, trials, options)
    else:
        _check_resumed(what, options)
    devices = [each.strip() for each in (options["devices"] or "").split(",") if each.strip()]
    where: dict[str, Any] = {"on": options["on"], "devices": devices, "workers": options["workers"]}
    with sinks.choose(as_json, "trial") as sink:
        reporter = SweepReporter(sink)
        if described is not None:
            done = sweep(described, out=options["out"], observer=reporter, **where)
        else:
            done = resume_sweep(resume or "", trials, observer=reporter, **where)
        reporter.finished(done)
    return SIGNAL_BASE + done.interrupted if isinstance(done.interrupted, int) else 0


def _described(what: str | None, trials: int | None, options: dict[str, Any]) -> Spec:
    """The sweep that is asked for; what stands in a file gives way to options. Raises UsageError, ConfigError."""
    from difflogic.sweeps import Spec

    given = {name: options[name] for name in ENTRIES} | {"trials": trials}
    given |= {"until_solved": options["until_solved"] or None, "within": options["within"] and str(options["within"])}
    fields = parse(options["assignments"])
    if options["epochs"] is not None:
        fields.setdefault("train", {})["epochs"] = options["epochs"]
    given |= {"set": fields or None}
    if what is not None and what.endswith(".toml"):
        if options["over"] or options["config_file"] is not None:
            raise UsageError(f"{what} says what to sweep over: drop --over and --config, or name a PRESET.")
        return Spec.load(Path(what), **given)
    over = {}
    for each in options["over"]:
        path, equals, text = each.partition("=")
        if not equals or not path.strip():
            raise UsageError(
                f"--over takes FIELD=VALUES, say optimizer.lr=0.02:0.2:log or seed=0..31, got {each[:200]!r}."
            )
        if path.strip() in over:
            raise UsageError("--over has a field twice: give all its values at once.")
        over[path.strip()] = text
    return Spec.of(preset=what, config=options["config_file"], over=over, **given)


def _check_resumed(what: str | None, options: dict[str, Any]) -> None:
    """Raises UsageError for what describes a sweep: one that goes on has been described."""
    given = ["PRESET"] if what is not None else []
    given += [written(name) for name in DESCRIBING if options[name]]
    if given:
        raise UsageError(f"--resume continues a sweep as it was configured: drop {', '.join(given)}.")
