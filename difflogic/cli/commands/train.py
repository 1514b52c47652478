"""`difflogic train`, and the short way to the paper's checkerboard."""

from __future__ import annotations

from typing import Any

import click

from difflogic.cli import options as shared
from difflogic.cli import training
from difflogic.cli.request import check_source


@click.command("train")
@click.argument("preset", required=False)
@shared.config_option
@shared.set_option
@shared.target_options
@shared.train_options
def command(**options: Any) -> int:
    """Train a preset, a configuration file, or your own picture or rule.

    PRESET is one of those that `difflogic presets` lists. With --target the grid becomes that of the picture, with
    --rule one step on a torus is learned; what changes is printed. Ends with a run folder: metrics, checkpoint, the
    hard circuit, pictures and a summary. Ctrl-C stops after the epochs under way and leaves a checkpoint that
    --resume continues, whatever the run is. With --population, the best model's circuit and pictures, and of all
    models metrics, checkpoint and the rate of success.

    Example: difflogic train lizard --set optimizer.lr=0.05 --epochs 1000
    """
    if options["resume"] is None:
        check_source(options)
    return training.run(options)


@click.command("train-checkerboard")
@shared.train_options
@click.option("--small", is_flag=True, help="The model of 1496 gates instead of 3040.")
def checkerboard(**options: Any) -> int:
    """Train the paper's checkerboard: a 16x16 board grown from noise in 20 steps by logic gates.

    The short way to `difflogic train checkerboard`. Ends with a run folder: metrics, checkpoint, the hard circuit,
    pictures and a summary. Ctrl-C stops after the epochs under way and leaves a checkpoint that --resume
    continues. With --population, the best model's circuit and pictures, and of all models metrics, checkpoint and
    the rate of success.

    Example: difflogic train-checkerboard --gpu --epochs 500
    """
    from difflogic.config import presets

    return training.run(options, presets.checkerboard(options["small"]))
