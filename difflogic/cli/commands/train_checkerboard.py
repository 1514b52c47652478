"""`difflogic train-checkerboard`."""

from __future__ import annotations

from typing import Any

import click

from difflogic.cli import training


@click.command("train-checkerboard")
@training.train_options
@click.option("--small", is_flag=True, help="The model of 1496 gates instead of 3040.")
def command(**options: Any) -> int:
    """Train the paper's checkerboard: a 16x16 board grown from noise in 20 steps by logic gates.

    The short way to `difflogic train checkerboard`. Ends with a run folder: metrics, checkpoint, the hard circuit,
    pictures and a summary. Ctrl-C stops after the epochs under way and leaves a checkpoint that --resume
    continues. With --population, the best model's circuit and pictures, and of all models metrics, checkpoint and
    the rate of success.

    Example: difflogic train-checkerboard --gpu --epochs 500
    """
    from difflogic import presets

    return training.start(options, lambda: presets.checkerboard(options["small"]))
