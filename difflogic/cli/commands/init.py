"""`difflogic init`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from difflogic.cli.options import force_option, forced, output_option, recipe_option, set_option, target_options
from difflogic.cli.request import agents, changes, requested
from difflogic.cli.screen.echo import echo
from difflogic.config.request import TrainRequest
from difflogic.system.files import Output, inside

if TYPE_CHECKING:
    from difflogic.config.document import Document


@click.command("init")
@click.argument("name", metavar="PRESET")
@output_option(help="The file to write [PRESET.toml].")
@force_option
@set_option
@recipe_option
@target_options
def command(name: str, out: Output | None, **options: Any) -> None:
    """Write a preset's configuration, of automata or agents, as a TOML file in which each field is explained.

    A field that is as it would be anyway is left out: `difflogic presets PRESET` prints them all. The recipe's fields
    are in the file.

    Example: difflogic init lizard -o mine.toml
    """
    from difflogic.config import registered
    from difflogic.config.customise import configure
    from difflogic.config.text import commented
    from difflogic.train import run_request

    # As for training: the file says what training would do with the same options.
    found, sentence, task, again = agents(options, name), "", None, ""
    config: Document | None = found
    if config is None:
        made = configure(requested(TrainRequest, options, preset=name))
        config, sentence = made.config, changes(made)
        # A file says nothing of attempts, which belong to its recipe.
        restarts = run_request.resolved(made.request, made.config)[0].restarts
        again = f" --restarts {restarts}" if restarts else ""
        if made.config.plugin.name:
            # Without the hash, samples are drawn by the settings, also when these are changed.
            config, task = made.config.with_(data={"sha256": ""}), registered.task_of(made.config.plugin).task
    out = out or Output(inside(Path(f"{name.rpartition(':')[2]}.toml"), Path()), forced())
    train = f"difflogic {'train' if found is None else 'train-policy'} --config {out}{again}"
    opening = (
        f"The preset {name} of difflogic, to be changed at will. Train it with: {train}. What is left out is as usual: "
        f"`difflogic presets {name}` prints every field."
    )
    out.write(commented(config, opening, task).encode())
    if sentence:
        echo(sentence)
    echo(f"Wrote {out}: train it with {train}")
