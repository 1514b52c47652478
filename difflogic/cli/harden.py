"""`difflogic harden`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from difflogic.cli import training
from difflogic.cli.options import engine_options, json_option, megabytes, policy_option

if TYPE_CHECKING:
    from difflogic.config import Config

SHARE_OF_EPOCHS = 0.25
"""Of a run's epochs, those that settling it takes unless it is said otherwise."""
GROWS_FOR = 0.8
"""Share of these epochs in which hardening grows to all gates."""
LR = 0.5
"""Of the run's learning rate."""


@click.command("harden")
@click.argument("run", type=training.FOLDER)
@engine_options
@policy_option
@click.option("--epochs", type=int, help="Epochs to settle it in [a quarter of the run's].")
@click.option("--eval-interval", type=int, help="Epochs between evaluations on the probes, each saved [10].")
@click.option("--log-interval", type=int, default=10, show_default=True, help="Epochs between log lines.")
@click.option("--out", type=training.FOLDER, metavar="DIR", help="A new run folder [runs/NAME-DATE-TIME].")
@click.option("--max-memory", type=megabytes, metavar="MB", help="Device memory that it may take (GPU engine).")
@json_option
def command(run: Path, **options: Any) -> int:
    """Settle the undecided gates of RUN: train its circuit on while more and more gates are hard.

    A new run that starts from RUN's logits and wiring, of a population from the best one's. The share of gates that
    are evaluated as their most probable gate grows to all of them, at half the learning rate that RUN began with. It
    ends at the first evaluation without a wrong value. RUN itself stays as it is.

    Example: difflogic harden runs/NAME
    """

    def make() -> Config:
        from difflogic import checkpoint

        config = checkpoint.load(run).config
        train = config.train
        epochs = options["epochs"] or max(1, round(SHARE_OF_EPOCHS * train.epochs))
        growth = {"hardening": 1.0, "harden_from": 0, "harden_to": max(1, round(GROWS_FOR * epochs))}
        interval = options["eval_interval"] or min(10, train.eval_interval)
        grown = {"growth_until": (), "growth_sides": (), "growth_steps": (), "settle_from": 0}
        pace = {"lr": LR * train.lr, "lr_end": 1.0, "epochs": epochs, **grown}
        return config.with_(train={**growth, **pace, "eval_interval": interval})

    unasked = dict.fromkeys(("resume", "recipe", "restarts", "population", "seed", "batch", "precision"))
    return training.start({**options, **unasked, "init_from": run, "stop_when_solved": 1}, make)
