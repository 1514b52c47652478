"""`difflogic cancel`."""

from __future__ import annotations

import click

from difflogic.cli.options import service


@click.command("cancel")
@click.argument("jobs", metavar="JOB...", nargs=-1, required=True)
def command(jobs: tuple[str, ...]) -> None:
    """Stop JOB: at once where it waits, else after the epochs under way, with a checkpoint.

    Example: difflogic cancel abcdefghijklmnop
    """
    with service("cancel"):
        from difflogic.serve.client import Client

    with Client.from_environment() as client:
        for job in jobs:
            found = client.cancel(job)
            is_over = found["status"] == "cancelled"
            click.echo(f"{job} is cancelled." if is_over else f"{job} is asked to stop, and will save first.")
