"""`difflogic logs`."""

from __future__ import annotations

import click

from difflogic.cli.options import service


@click.command("logs")
@click.argument("job")
@click.option("--tail", type=click.IntRange(1, 1 << 20), default=1 << 16, show_default=True, help="Bytes at most.")
def command(job: str, tail: int) -> None:
    """Print the end of what the workers of JOB wrote.

    Example: difflogic logs abcdefghijklmnop
    """
    with service("logs"):
        from difflogic.serve.client import Client

    with Client.from_environment() as client:
        click.echo(client.log(job, tail), nl=False)
