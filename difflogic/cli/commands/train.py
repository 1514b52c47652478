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
@click.option(
    "--label", metavar="COLUMN", help="Train a classifier: --data is a table, .csv or .npz, and this column is learned."
)
@shared.train_options
def command(**options: Any) -> int:
    """Train a preset, a configuration file, your own picture or rule, a classifier, or an agent.

    PRESET is a name that `difflogic presets` lists, or an environment's, say Acrobot-v1. --target sets the grid to
    the size of the picture. --rule learns one step of a rule on a torus. The command prints which settings these
    options change. It writes a run folder with metrics, checkpoint, the hard circuit, pictures and a summary. With
    --population the folder has the best model's circuit and pictures, the metrics of all models, and the success
    rate. Ctrl-C stops after the current epochs and saves a checkpoint, from which --resume continues.

    With --label the rows of the table --data are learned: their other columns are numbers, which thresholds turn
    into bits. A fifth of the rows is held out, and the accuracy on them is printed at the end. Of a --population
    the best is chosen by other rows that are not learned. --steps counts rows.

    Example: difflogic train lizard --set optimizer.lr=0.05 --epochs 1000
    """
    if options["resume"] is None and options["label"] is None:
        check_source(options)
    return training.run(options)


@click.command("train-checkerboard")
@shared.train_options
@click.option("--small", is_flag=True, help="The model of 1496 gates instead of 3040.")
def checkerboard(**options: Any) -> int:
    """Train the paper's checkerboard: a 16x16 board grown from noise in 20 steps by logic gates.

    This is short for `difflogic train checkerboard`. It writes a run folder with metrics, checkpoint, the hard
    circuit, pictures and a summary. Ctrl-C stops after the current epochs and saves a checkpoint, from which
    --resume continues.

    Example: difflogic train-checkerboard --gpu --epochs 500
    """
    if options["resume"] is None:
        options["preset"] = "checkerboard-small" if options["small"] else "checkerboard"
    return training.run(options)
