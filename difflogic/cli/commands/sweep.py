"""`difflogic sweep`: many runs that differ in some fields."""

from __future__ import annotations

from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from difflogic.cli import options as shared
from difflogic.cli.request import axes, parse, said, written
from difflogic.cli.training import SIGNAL_BASE
from difflogic.config.request import SweepRequest
from difflogic.errors import UsageError

if TYPE_CHECKING:
    from difflogic.sweeps import Spec

WITH_RESUME = ("resume", "trials", "devices", "workers", "as_json")
"""Options of a resumed sweep."""


def _workers(text: str) -> int | str:
    return int(text) if text.lstrip("-").isdecimal() else text


@click.command("sweep", cls=shared.TrainingCommand)
@click.argument("what", metavar="[PRESET|SPEC.toml]", required=False)
@shared.config_option
@shared.set_option
@shared.sweep_options
@click.option("--epochs", type=int, help="Epochs of each trial.")
@shared.options_of("what", "run", "until", where=attrgetter("of_trials"))
@click.option(
    "--devices", metavar="LIST", help="The devices, for example gpu:0,gpu:1 or cpu [the hardware GPUs, or else cpu]."
)
@click.option(
    "--workers",
    type=_workers,
    metavar="N|ray[:HOST:PORT]",
    help="Processes on the CPU, or a Ray cluster, each core of which is one [one for each core of this machine].",
)
@click.option("--out", "-o", type=shared.PATH, metavar="DIR", help="A new folder [runs/sweep-NAME-DATE-TIME].")
@click.option("--resume", type=shared.PATH, metavar="DIR", help="Continue the sweep in this folder.")
@shared.json_option
def command(what: str | None, resume: Path | None, trials: int | None, as_json: bool, **options: Any) -> int:
    """Train many runs that differ in some fields, and compare them.

    Give a PRESET of automata or agents, --config FILE, or the file of a sweep. Each trial is a run folder. The command
    writes tables, a page and the best run. Ctrl-C saves and stops it. --resume continues it bit for bit, and extends it
    if --trials is larger. Metrics: tts is the cost of a solution in billions of gate evaluations, or in steps of
    agents; hard_loss counts wrong cells; gates counts those of solved trials per cell; return is that of agents.

    Example: difflogic sweep checkerboard-small --over optimizer.lr=0.05,0.1,0.2 --over seed=0..7 --metric tts
    """
    from difflogic.cli.screen import sinks
    from difflogic.cli.screen.sweeps import SweepReporter
    from difflogic.serve.sweep import resume_sweep, sweep

    described = None if resume is not None else _described(what, trials, options)
    if resume is not None:
        given = ["PRESET"] if what is not None else []
        given += [written(name) for name, value in options.items() if name not in WITH_RESUME and value]
        if given:
            raise UsageError(f"--resume continues a sweep as it was configured: drop {', '.join(given)}.")
    devices = [each.strip() for each in (options["devices"] or "").split(",") if each.strip()]
    where: dict[str, Any] = {"devices": devices, "workers": options["workers"]}
    with sinks.choose(as_json, "trial") as sink:
        reporter = SweepReporter(sink)
        if described is not None:
            done = sweep(described, out=options["out"], observer=reporter, **where)
        else:
            done = resume_sweep(resume or "", trials, observer=reporter, **where)
        reporter.finished(done)
    return SIGNAL_BASE + done.interrupted if isinstance(done.interrupted, int) else 0


def _described(what: str | None, trials: int | None, options: dict[str, Any]) -> Spec:
    from difflogic.sweeps import Spec

    given = said(options) | said(options, SweepRequest) | {"trials": trials}
    fields = parse(options["assignments"])
    if options["epochs"] is not None:
        fields.setdefault("train", {})["epochs"] = options["epochs"]
    given |= {"set": fields or None}
    if what is not None and what.endswith(".toml"):
        if options["over"] or options["config_file"] is not None:
            raise UsageError(f"{what} says what to sweep over: drop --over and --config, or name a PRESET.")
        return Spec.load(Path(what), **given)
    return Spec.of(**given | {"preset": what, "config": options["config_file"], "over": axes(options["over"])})
