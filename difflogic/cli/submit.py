"""`difflogic submit`."""

from __future__ import annotations

import json
from typing import Any

import click

from difflogic.cli import target, training
from difflogic.cli.options import json_option, service
from difflogic.errors import UsageError


@click.command("submit")
@click.argument("preset", required=False)
@target.config_option
@target.set_option
@target.target_options
@training.field_options
@click.option("--engine", default="auto", metavar="auto|gpu[:INDEX]|cpu|reference", help="What is to compute [auto].")
@click.option("--population", type=int, default=1, metavar="M", help="Train M seeds at once, from --seed on [1].")
@click.option(
    "--stop-when-solved",
    type=int,
    is_flag=False,
    flag_value=1,
    default=0,
    metavar="[N]",
    help="Stop at the first evaluation that finds a model, or N models, without a wrong value.",
)
@click.option("--name", help="What the job is called [the configuration's name].")
@click.option("--priority", type=click.IntRange(-10, 10), default=0, help="Higher ones are taken first [0].")
@click.option("--watch", is_flag=True, help="Follow it at once, as `difflogic watch` does.")
@json_option
def command(**options: Any) -> int:
    """Give a training to the server of DIFFLOGIC_SERVER, with the token of DIFFLOGIC_TOKEN; prints the job's id.

    What to train is said as to `difflogic train`: a preset, a file, your own picture or rule. Pictures and files are
    read here, and the server gets the whole configuration.

    Example: difflogic submit lizard --target cat.png --size 24x24 --watch
    """
    with service("submit"):
        from difflogic.serve.client import Client
    if [options["preset"], options["config_file"]].count(None) != 1:
        raise UsageError(
            "Say what to train: the name of a preset, as `difflogic presets` lists them, or --config FILE."
        )
    config, told = target.configured(options)
    config = training.with_options(config, options)
    if told and not options["as_json"]:
        click.echo(told, err=True)
    asked = {name: options[name] for name in ("engine", "population", "stop_when_solved", "priority")}
    name = {} if options["name"] is None else {"name": options["name"]}
    with Client.from_environment() as client:
        job = client.submit({"config": config.to_dict(), **asked, **name})
        if not options["watch"]:
            click.echo(json.dumps(job) if options["as_json"] else job["id"])
            return 0
        from difflogic.cli.following import watch

        return watch(client, job["id"], options["as_json"])
