"""`difflogic harden`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from difflogic.cli import training
from difflogic.cli.options import PATH, engine_options, engine_selector, json_option, megabytes, policy_option
from difflogic.cli.request import train_request

if TYPE_CHECKING:
    from difflogic.config.schema import Config

SHARE_OF_EPOCHS = 0.25
"""The share of a run's epochs that settling it takes, unless it is said otherwise."""
GROWS_FOR = 0.8
"""Share of these epochs in which hardening grows to all gates."""
LR = 0.5
"""The share of the run's learning rate."""


@click.command("harden")
@click.argument("run", type=PATH)
@engine_options
@policy_option
@click.option("--epochs", type=int, help="Epochs to settle it in [a quarter of the run's].")
@click.option("--search", is_flag=True, help="Search the hard circuit itself instead, with no gradient.")
@click.option("--eval-interval", type=int, help="Epochs between evaluations on the probes, each saved [10].")
@click.option("--log-interval", type=int, default=10, show_default=True, help="Epochs between log lines.")
@click.option("--out", "-o", type=PATH, metavar="DIR", help="A new run folder [runs/NAME-DATE-TIME].")
@click.option("--max-memory", type=megabytes, metavar="MB", help="Device memory that it may take (GPU engine).")
@json_option
def command(run: Path, search: bool, **options: Any) -> int:
    """Settle the undecided gates of RUN: train its circuit on while more and more gates are hard.

    A new run that starts from RUN's logits and wiring, of a population from the best one's. The share of gates that
    are evaluated as their most probable gate grows to all of them, at half the learning rate that RUN began with. It
    ends at the first evaluation without a wrong value: what is still undecided then becomes what it most probably is,
    by which the hard circuit stays right. RUN itself stays as it is.

    With --search no logit is trained. The hard circuit's gates change their functions one at a time, and what makes
    fewer values wrong, or no more, is kept: a run that is nearly right may so become right. Gates stay undecided.

    Example: difflogic harden runs/NAME
    Example: difflogic harden runs/NAME --search --epochs 1000
    """
    request = train_request(
        options,
        _hardening(run, search, options["epochs"], options["eval_interval"]),
        engine=engine_selector(options["engine"], options["gpu"]),
        init_from=run,
        # One right evaluation is all that is wanted: what is undecided then is decided without changing the hard
        # circuit.
        stop_when_solved=1,
        decide=not search,
    )
    return training.start(request, training.Launch.of(options))


def _hardening(run: Path, search: bool, epochs: int | None, interval: int | None) -> Config:
    """The configuration of a run, with the schedule by which its gates are decided, or its hard circuit searched."""
    from difflogic.config.train import GrowthConfig
    from difflogic.runs import chosen

    config = chosen.load(run).config
    epochs = epochs or max(1, round(SHARE_OF_EPOCHS * config.train.epochs))
    # An example: a run of 1000 epochs gets 250 more. Hardening grows to all gates over the first 200 of them, and in
    # the last 50 the circuit is trained as it will be used.
    to = max(1, round(GROWS_FOR * epochs))
    return config.with_(
        train={"epochs": epochs, "eval_interval": interval or min(10, config.train.eval_interval)},
        optimizer={"lr": 0.0 if search else LR * config.optimizer.lr},
        schedule={"share": 1.0},
        hardening={"share": 0.0} if search else {"share": 1.0, "begin": 0, "end": to},
        growth=GrowthConfig(),
        search={"begin": 1 if search else 0},  # after one epoch that changes nothing
    )
