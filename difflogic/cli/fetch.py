"""`difflogic fetch`."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click

from difflogic.cli.options import service


@click.command("fetch")
@click.argument("job")
@click.argument("folder", type=click.Path(path_type=Path))
def command(job: str, folder: Path) -> None:
    """Take the files of JOB into FOLDER, which must be new or empty.

    A training's files are a run folder, that `difflogic show`, `evaluate`, `export` and `train --resume` take.

    Example: difflogic fetch abcdefghijklmnop runs/mine
    """
    with service("fetch"):
        from difflogic.serve import unpack
        from difflogic.serve.client import Client

    unpack.check_new(folder)
    with Client.from_environment() as client, tempfile.TemporaryFile() as file:
        client.archive(job, file)
        names = unpack.unpack(file, job, folder)
    click.echo(f"{len(names)} files are in {folder}" if names else f"The job has no files yet: {folder} is empty.")
