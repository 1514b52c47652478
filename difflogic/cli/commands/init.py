"""`difflogic init`: write a configuration file."""

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

    Fields with default values are left out: `difflogic presets PRESET` prints all. The recipe's fields are included.

    Example: difflogic init lizard -o mine.toml
    """
    from difflogic.config import registered
    from difflogic.config.customise import configure
    from difflogic.config.text import commented
    from difflogic.train import run_request

    # The file configures the training that `train` would begin with the same options.
    config_of_agents, sentence, task, restart_option = agents(options, name), "", None, ""
    config: Document | None = config_of_agents
    if config is None:
        configured = configure(requested(TrainRequest, options, preset=name))
        config, sentence = configured.config, changes(configured)
        # Restarts follow from the recipe and have no field in the file, so the printed command has an option.
        restarts = run_request.resolved(configured.request, configured.config)[0].restarts
        restart_option = f" --restarts {restarts}" if restarts else ""
        if configured.config.plugin.name:
            # Without the hash, the samples are drawn again when the settings change.
            config = configured.config.with_(data={"sha256": ""})
            task = registered.task_of(configured.config.plugin).task
    out = out or Output(inside(Path(f"{name.rpartition(':')[2]}.toml"), Path()), forced())
    train = f"difflogic {'train' if config_of_agents is None else 'train-policy'} --config {out}{restart_option}"
    opening = (
        f"The preset {name} of difflogic, for you to edit. Train it with: {train}. Fields that are left out have "
        f"their defaults: `difflogic presets {name}` prints every field."
    )
    out.write(commented(config, opening, task).encode())
    if sentence:
        echo(sentence)
    echo(f"Wrote {out}: train it with {train}")
