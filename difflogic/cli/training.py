"""What every command that trains shares: its options, where it runs, and how it ends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from difflogic.cli.options import (
    checked_policy,
    engine_options,
    engine_selector,
    json_option,
    megabytes,
    policy_option,
    precision_option,
)
from difflogic.errors import UsageError

if TYPE_CHECKING:
    from difflogic.config import Config
    from difflogic.train.loop import Run
    from difflogic.train.placement import Placement
    from difflogic.train.session import GiveUp

Function = TypeVar("Function", bound=Callable[..., Any])

SIGNAL_BASE = 128
"""A process ended by signal N returns 128 + N, by the shell's custom."""
FOLDER = click.Path(path_type=Path)
OF_RUN = (
    "engine",
    "gpu",
    "require_hardware",
    "policy",
    "log_interval",
    "stop_when_solved",
    "resume",
    "max_memory",
    "as_json",
)
"""Options that do not describe the run: a resumed one takes them too."""
WRITTEN = {"preset": "PRESET", "config_file": "--config", "assignments": "--set"}
"""Options and arguments as users write them, where that is not their own name."""


def field_options(function: Function) -> Function:
    """What changes the configuration; `with_options` reads it."""
    for option in reversed(
        (
            click.option(
                "--recipe",
                type=click.Choice(("paper", "robust")),
                help="The paper's training, or one whose seeds succeed more often: benchmarks/success.md [paper].",
            ),
            click.option("--epochs", type=int, help="Epochs in all, those before --resume included."),
            click.option("--seed", type=int, help="Wiring, starts and probes come from it [23]."),
            click.option("--batch", type=int, help="Samples per epoch."),
            click.option(
                "--eval-interval", type=int, help="Epochs between evaluations on the probes, each saved [50]."
            ),
            precision_option,
        )
    ):
        function = option(function)
    return function


def train_options(function: Function) -> Function:
    """All that `start` reads."""
    for option in reversed(
        (
            engine_options,
            policy_option,
            field_options,
            click.option("--log-interval", type=int, default=10, show_default=True, help="Epochs between log lines."),
            click.option("--population", type=int, metavar="M", help="Train M seeds at once, from --seed on [1]."),
            click.option(
                "--stop-when-solved",
                type=int,
                is_flag=False,
                flag_value=1,
                metavar="[N]",
                help="Stop at the first evaluation that finds a model, or N models, without a wrong value.",
            ),
            click.option(
                "--restarts",
                type=int,
                metavar="N",
                help="Begin again with other wiring where a run stalls, N times at most; --epochs counts for all.",
            ),
            click.option("--out", type=FOLDER, metavar="DIR", help="A new run folder [runs/NAME-DATE-TIME]."),
            click.option("--resume", type=FOLDER, metavar="DIR", help="Continue the run in this folder, bit for bit."),
            click.option(
                "--init-from", type=FOLDER, metavar="RUN", help="Start from the logits and wiring of another run."
            ),
            click.option(
                "--max-memory", type=megabytes, metavar="MB", help="Device memory that training may take (GPU engine)."
            ),
            json_option,
        )
    ):
        function = option(function)
    return function


def start(options: dict[str, Any], make: Callable[[], Config]) -> int:
    """Train what `make` says, or go on with the run that `--resume` names; returns the exit code.

    Raises the errors of `Trainer.run`, UsageError where options contradict each other.
    """
    from difflogic.cli import reporters
    from difflogic.train import restarts
    from difflogic.train.folder import default_path
    from difflogic.train.loop import Trainer
    from difflogic.train.placement_memory import keep_last
    from difflogic.train.policy import place_run

    resume = options["resume"]
    selector = engine_selector(options["engine"], options["gpu"])
    chosen = checked_policy(options["policy"], selector, resume is not None)
    stop_when_solved = options["stop_when_solved"]
    if options["restarts"] is not None and stop_when_solved is None:
        stop_when_solved = 1
    if options["restarts"] is not None and options["init_from"] is not None:
        raise UsageError("--restarts begins again with other wiring, --init-from keeps that of a run: drop one.")
    if stop_when_solved is not None and stop_when_solved < 1:
        raise UsageError(f"--stop-when-solved counts models: expected at least 1, got {stop_when_solved}.")
    config = with_options(make(), options) if resume is None else _resumed_config(resume, options)
    if resume is None and selector in (None, "auto"):
        placement = place_run(config, options["population"] or 1, chosen, options["require_hardware"])
    else:
        placement = _place(selector, options["require_hardware"], resume)
    placement = placement.limited(options["max_memory"])
    out = options["out"] or (None if resume else default_path(config.name))
    with reporters.choose(options["as_json"]) as reporter:

        def attempt(config: Config, out: Path | None, give_up: GiveUp | None = None) -> Run:
            return Trainer(config, placement.engine, placement.reason).run(
                out=out,
                resume=resume,
                init_from=options["init_from"],
                population=options["population"],
                stop_when_solved=stop_when_solved or 0,
                log_interval=options["log_interval"],
                observer=reporter,
                give_up=give_up,
            )

        if options["restarts"] is None:
            run = attempt(config, out)
        else:
            run = restarts.train(config, options["restarts"], options["population"] or 1, out, attempt, reporter).last
        reporter.ended(run)
    keep_last(run.config, len(run.members), run.engine)
    return 0 if run.interrupted is None else SIGNAL_BASE + run.interrupted


def with_options(config: Config, options: dict[str, Any]) -> Config:
    """By the recipe, where there is one; what else `field_options` and `--set` ask for goes before it."""
    from difflogic import recipes
    from difflogic.cli import settings
    from difflogic.train.wanted import applied

    asked = settings.asked(options)
    config = applied(config, asked)
    return config if options["recipe"] is None else applied(recipes.applied(options["recipe"], config), asked)


def _resumed_config(resume: Path, options: dict[str, Any]) -> Config:
    """The run's own configuration; only the number of epochs may change."""
    from difflogic import checkpoint

    given = [
        name for name, value in options.items() if name not in (*OF_RUN, "epochs") and value not in (None, False, (), 0)
    ]
    if given:
        names = ", ".join(_written(name) for name in given)
        raise UsageError(f"--resume continues a run as it was configured: drop {names}.")
    config = checkpoint.read(resume).members[0].config
    return config if options["epochs"] is None else config.with_(train={"epochs": options["epochs"]})


def _written(name: str) -> str:
    return WRITTEN.get(name, "--" + name.replace("_", "-"))


def _place(selector: str | None, require_hardware: bool, resume: Path | None) -> Placement:
    """The engine asked for; for a resumed run the one it ran on, unless another is asked for."""
    from difflogic import checkpoint
    from difflogic.train import manifest, placement

    if selector is None and resume is not None:
        earlier = manifest.last_engine(manifest.read(checkpoint.locate(resume).parent))
        return placement.place_again(earlier, require_hardware, trusted=True)
    return placement.place(selector or "auto", require_hardware, trusted=True)
