"""`difflogic train-checkerboard`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from difflogic.cli.options import (
    checked_policy,
    engine_options,
    engine_selector,
    json_option,
    megabytes,
    policy_option,
)
from difflogic.errors import UsageError

if TYPE_CHECKING:
    from difflogic.config import Config
    from difflogic.train.placement import Placement

SIGNAL_BASE = 128
"""A process ended by signal N returns 128 + N, by the shell's custom."""

FOLDER = click.Path(path_type=Path)


@click.command("train-checkerboard")
@engine_options
@policy_option
@click.option("--epochs", type=int, help="Epochs in all, those before --resume included [500].")
@click.option("--seed", type=int, help="Wiring, start grids and probes come from it [23].")
@click.option("--batch", type=int, help="Start grids per epoch [2].")
@click.option("--small", is_flag=True, help="The model of 1496 gates instead of 3040.")
@click.option("--log-interval", type=int, default=10, show_default=True, help="Epochs between log lines.")
@click.option("--eval-interval", type=int, help="Epochs between evaluations on the probes, each saved [50].")
@click.option("--population", type=int, metavar="M", help="Train M seeds at once, from --seed on [1].")
@click.option(
    "--stop-when-solved",
    type=int,
    is_flag=False,
    flag_value=1,
    metavar="[N]",
    help="Stop at the first evaluation that finds a model, or N models, without a wrong value.",
)
@click.option("--out", type=FOLDER, metavar="DIR", help="A new run folder [runs/NAME-DATE-TIME].")
@click.option("--resume", type=FOLDER, metavar="DIR", help="Continue the run in this folder, bit for bit.")
@click.option("--init-from", type=FOLDER, metavar="RUN", help="Start from the logits and wiring of another run.")
@click.option("--max-memory", type=megabytes, metavar="MB", help="Device memory that training may take (GPU engine).")
@json_option
def command(
    engine: str | None,
    gpu: bool,
    require_hardware: bool,
    policy: str | None,
    log_interval: int,
    stop_when_solved: int | None,
    resume: Path | None,
    max_memory: int | None,
    as_json: bool,
    **settings: Any,
) -> int:
    """Train the paper's checkerboard: a 16x16 board grown from noise in 20 steps by logic gates.

    Ends with a run folder: metrics, checkpoint, the hard circuit, pictures and a summary. Ctrl-C stops
    after the epochs under way and leaves a checkpoint that --resume continues. With --population, the best
    model's circuit and pictures, and of all models metrics, checkpoint and the rate of success.

    Example: difflogic train-checkerboard --gpu --epochs 500
    """
    from difflogic.cli import reporters
    from difflogic.train.folder import default_path
    from difflogic.train.loop import Trainer
    from difflogic.train.placement_memory import keep_last
    from difflogic.train.policy import place_run

    selector = engine_selector(engine, gpu)
    chosen = checked_policy(policy, selector, resume is not None)
    if stop_when_solved is not None and stop_when_solved < 1:
        raise UsageError(f"--stop-when-solved counts models: expected at least 1, got {stop_when_solved}.")
    config = _new_config(settings) if resume is None else _resumed_config(resume, settings)
    out = settings["out"] or (None if resume else default_path(config.name))
    if resume is None and selector in (None, "auto"):
        placement = place_run(config, settings["population"] or 1, chosen, require_hardware)
    else:
        placement = _place(selector, require_hardware, resume)
    placement = placement.limited(max_memory)
    with reporters.choose(as_json) as reporter:
        run = Trainer(config, placement.engine, placement.reason).run(
            out=out,
            resume=resume,
            init_from=settings["init_from"],
            population=settings["population"],
            stop_when_solved=stop_when_solved or 0,
            log_interval=log_interval,
            observer=reporter,
        )
        reporter.ended(run)
    keep_last(run.config, len(run.members), run.engine)
    return 0 if run.interrupted is None else SIGNAL_BASE + run.interrupted


def _new_config(settings: dict[str, Any]) -> Config:
    from difflogic import presets

    config = presets.checkerboard(settings["small"])
    train = {name: settings[name] for name in ("epochs", "batch", "eval_interval") if settings[name] is not None}
    seed = {} if settings["seed"] is None else {"seed": settings["seed"]}
    return config.with_(train=train, **seed)


def _resumed_config(resume: Path, settings: dict[str, Any]) -> Config:
    """The run's own configuration; only the number of epochs may change."""
    from difflogic import checkpoint

    given = [name for name, value in settings.items() if name != "epochs" and value not in (None, False)]
    if given:
        options = ", ".join("--" + name.replace("_", "-") for name in given)
        raise UsageError(f"--resume continues a run as it was configured: drop {options}.")
    config = checkpoint.read(resume).members[0].config
    return config if settings["epochs"] is None else config.with_(train={"epochs": settings["epochs"]})


def _place(selector: str | None, require_hardware: bool, resume: Path | None) -> Placement:
    """The engine asked for; for a resumed run the one it ran on, unless another is asked for."""
    from difflogic import checkpoint
    from difflogic.train import manifest, placement

    if selector is None and resume is not None:
        earlier = manifest.last_engine(manifest.read(checkpoint.locate(resume).parent))
        return placement.place_again(earlier, require_hardware, trusted=True)
    return placement.place(selector or "auto", require_hardware, trusted=True)
