"""`difflogic sweep`: train many runs that differ in some fields, and compare them."""

from __future__ import annotations

from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from difflogic.cli import options as shared
from difflogic.cli.request import axes, parse, request_fields, written
from difflogic.cli.training import SIGNAL_BASE
from difflogic.config.request import SweepRequest
from difflogic.errors import UsageError

if TYPE_CHECKING:
    from difflogic.sweeps import Spec

WITH_RESUME = ("resume", "trials", "devices", "workers", "as_json")
"""Options that are allowed with `--resume`."""


def _workers(text: str) -> int | str:
    return int(text) if text.lstrip("-").isdecimal() else text


@click.command("sweep", cls=shared.TrainingCommand)
@click.argument("what", metavar="[PRESET|SPEC.toml]", required=False)
@shared.config_option
@shared.set_option
@shared.sweep_options
@click.option("--epochs", type=int, help="Epochs of each trial.")
@shared.options_of("what", "run", "until", where=attrgetter("of_trials"))
@click.option("--devices", metavar="LIST", help="The devices, such as gpu:0,gpu:1 or cpu [hardware GPUs, else cpu].")
@click.option(
    "--workers",
    type=_workers,
    metavar="N|ray[:HOST:PORT]",
    help="The number of processes on the CPU, or a Ray cluster with one per core [one per core of this machine].",
)
@click.option("--out", "-o", type=shared.PATH, metavar="DIR", help="A new folder [runs/sweep-NAME-DATE-TIME].")
@click.option("--resume", type=shared.PATH, metavar="DIR", help="Continue the sweep in this folder.")
@shared.json_option
def command(what: str | None, resume: Path | None, trials: int | None, as_json: bool, **options: Any) -> int:
    """Train many runs that differ in some fields, and compare them.

    Give a PRESET of automata or agents, --config FILE, or the file of a sweep. Each trial is a run folder. The command
    writes tables, a page and the best run. Ctrl-C saves and stops it. --resume continues it bit for bit, and extends it
    if --trials is larger. Metrics: tts is the cost of a solution in billions of gate evaluations, or in steps of
    agents; hard_loss is the number of wrong cells; gates is the number per cell in solved trials; return is for agents.

    Example: difflogic sweep checkerboard-small --over optimizer.lr=0.05,0.1,0.2 --over seed=0..7 --metric tts
    """
    from difflogic.cli.screen import sinks
    from difflogic.cli.screen.sweeps import SweepReporter
    from difflogic.serve.sweep import resume_sweep, sweep

    spec = None if resume is not None else _spec(what, trials, options)
    if resume is not None:
        unused = ["PRESET"] if what is not None else []
        unused += [written(name) for name, value in options.items() if name not in WITH_RESUME and value]
        if unused:
            raise UsageError(f"--resume continues a sweep as it was configured: omit {', '.join(unused)}.")
    devices = [device.strip() for device in (options["devices"] or "").split(",") if device.strip()]
    with sinks.choose(as_json, "trial") as sink:
        reporter = SweepReporter(sink)
        settings: dict[str, Any] = {"devices": devices, "workers": options["workers"], "observer": reporter}
        if spec is not None:
            done = sweep(spec, out=options["out"], **settings)
        else:
            done = resume_sweep(resume or "", trials, **settings)
        reporter.finished(done)
    return SIGNAL_BASE + done.interrupted if isinstance(done.interrupted, int) else 0


def _spec(what: str | None, trials: int | None, options: dict[str, Any]) -> Spec:
    from difflogic.sweeps import Spec

    fields = parse(options["assignments"])
    if options["epochs"] is not None:
        fields.setdefault("train", {})["epochs"] = options["epochs"]
    settings = request_fields(options) | request_fields(options, SweepRequest)
    settings |= {"trials": trials, "set": fields or None}
    if what is not None and what.endswith(".toml"):
        if options["over"] or options["config_file"] is not None:
            raise UsageError(f"{what} already defines the sweep: omit --over and --config, or name a PRESET.")
        return Spec.load(Path(what), **settings)
    return Spec.of(**settings | {"preset": what, "config": options["config_file"], "over": axes(options["over"])})
