"""`difflogic init`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from difflogic.cli.options import force_option, forced, output_option, set_option, target_options
from difflogic.cli.request import changes, train_request
from difflogic.system.files import Output


@click.command("init")
@click.argument("name", metavar="PRESET")
@output_option(help="Where to write it [PRESET.toml].")
@force_option
@set_option
@target_options
def command(name: str, out: Output | None, **options: Any) -> None:
    """Write a preset's configuration as a TOML file in which every field is explained, to change and train.

    Example: difflogic init lizard -o mine.toml
    """
    from difflogic.config import registered
    from difflogic.config.customise import configure
    from difflogic.config.text import commented

    # The same way as for training: what the file says is what `train` would do with the same options.
    made = configure(train_request(options, preset=name))
    out = out or Output(Path(f"{name.rpartition(':')[2]}.toml"), forced())
    config, task = made.config, None
    if config.plugin.name:
        # The hash stays out of it: samples are drawn by the settings, whatever these are changed to.
        config, task = config.with_(data={"sha256": ""}), registered.task_of(config.plugin).task
    opening = f"The preset {name} of difflogic, to be changed at will. Train it with: difflogic train --config {out}"
    out.write(commented(config, opening, task).encode())
    if sentence := changes(made):
        click.echo(sentence)
    click.echo(f"Wrote {out}: train it with difflogic train --config {out}")
