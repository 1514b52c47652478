"""`difflogic train-checkerboard`."""

from __future__ import annotations

from typing import Any

import click

from difflogic.cli import training
from difflogic.cli.options import train_options


@click.command("train-checkerboard")
@train_options
@click.option("--small", is_flag=True, help="The model of 1496 gates instead of 3040.")
def command(**options: Any) -> int:
    """Train the paper's checkerboard: a 16x16 board grown from noise in 20 steps by logic gates.

    The short way to `difflogic train checkerboard`. Ends with a run folder: metrics, checkpoint, the hard circuit,
    pictures and a summary. Ctrl-C stops after the epochs under way and leaves a checkpoint that --resume
    continues. With --population, the best model's circuit and pictures, and of all models metrics, checkpoint and
    the rate of success.

    Example: difflogic train-checkerboard --gpu --epochs 500
    """
    from difflogic.config import presets

    return training.run(options, presets.checkerboard(options["small"]))
