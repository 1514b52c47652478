"""`difflogic watch`."""

from __future__ import annotations

import click

from difflogic.cli.options import json_option, service


@click.command("watch")
@click.argument("job")
@click.option("--log-interval", type=click.IntRange(1), default=10, show_default=True, help="Epochs between log lines.")
@json_option
def command(job: str, log_interval: int, as_json: bool) -> int:
    """Follow JOB until it ends, as if it ran here; Ctrl-C ends the watching, not the job.

    Where the server is away for a while, watching goes on when it is back. The exit code is 0 where the job is done,
    1 where it failed or was cancelled.

    Example: difflogic watch abcdefghijklmnop
    """
    with service("watch"):
        from difflogic.cli.following import watch
        from difflogic.serve.client import Client

    with Client.from_environment() as client:
        return watch(client, job, as_json, log_interval)
