"""`difflogic train`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from difflogic.cli import target, training
from difflogic.errors import UsageError

if TYPE_CHECKING:
    from difflogic.config import Config


@click.command("train")
@click.argument("preset", required=False)
@target.config_option
@target.set_option
@target.target_options
@training.train_options
def command(**options: Any) -> int:
    """Train a preset, a configuration file, or your own picture or rule.

    PRESET is one of those that `difflogic presets` lists. With --target the grid becomes that of the picture, with
    --rule one step on a torus is learned; what changes is printed. Ends with a run folder: metrics, checkpoint, the
    hard circuit, pictures and a summary. Ctrl-C stops after the epochs under way and leaves a checkpoint that
    --resume continues, whatever the run is. With --population, the best model's circuit and pictures, and of all
    models metrics, checkpoint and the rate of success.

    Example: difflogic train lizard --set train.lr=0.05 --epochs 1000
    """
    sources = [options[name] for name in ("preset", "config_file")]
    if options["resume"] is None and sources.count(None) != 1:
        raise UsageError(
            "Say what to train: the name of a preset, as `difflogic presets` lists them, or --config FILE."
        )

    def make() -> Config:
        config, told = target.configured(options)
        if told and not options["as_json"]:
            click.echo(told)
        return config

    return training.start(options, make)
