"""`difflogic harden`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from difflogic.cli import training
from difflogic.cli.options import PATH, engine_options, engine_selector, json_option, megabytes, placement_option


@click.command("harden")
@click.argument("run", type=PATH)
@engine_options
@placement_option
@click.option("--epochs", type=int, help="Epochs of the hardening [a quarter of the run's].")
@click.option("--search", is_flag=True, help="Search the hard circuit instead, without gradients.")
@click.option("--eval-interval", type=int, help="Epochs between evaluations. Each one saves a checkpoint [10].")
@click.option("--log-interval", type=int, default=10, show_default=True, help="Epochs between log lines.")
@click.option("--out", "-o", type=PATH, metavar="DIR", help="A new run folder [runs/NAME-DATE-TIME].")
@click.option("--max-memory", type=megabytes, metavar="MB", help="The most device memory (GPU engine).")
@json_option
def command(run: Path, search: bool, **options: Any) -> int:
    """Settle the unconverged gates of RUN: train its circuit on while more and more gates are hard.

    This makes a new run, which starts from RUN's logits and wiring (of a population, the best model's). During
    training more and more gates are evaluated as their most probable function, at half of RUN's first learning
    rate. Training ends at the first evaluation without a wrong cell. Each unconverged gate then becomes its most
    probable function, and the circuit stays right. RUN itself does not change.

    With --search no logits are trained. Instead, gates of the hard circuit change their function one at a time. A
    change is kept if it makes no more cells wrong. This can repair a run that is nearly right. Its gates stay
    unconverged.

    Example: difflogic harden runs/NAME

    Example: difflogic harden runs/NAME --search --epochs 1000
    """
    from difflogic.train.run_request import hardening_request

    selector = engine_selector(options["engine"], options["gpu"])
    request = hardening_request(run, search, options["epochs"], options["eval_interval"], engine=selector)
    return training.start(request, options)
