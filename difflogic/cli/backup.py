"""`difflogic backup`: a copy of a live store."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("backup")
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("file", type=click.Path(path_type=Path))
def command(folder: Path, file: Path) -> None:
    """Copy the store in FOLDER, jobs, checkpoints, metrics and results, to FILE, a tar; compressed if it ends in .gz.

    Jobs may be submitted and trained meanwhile. `tar -xf FILE -C NEW` makes a folder to serve again, in which jobs that
    ran go on from their checkpoints. Tokens are not in it.

    Example: difflogic backup difflogic-jobs monday.tar.gz
    """
    from difflogic.serve.backup import back_up
    from difflogic.serve.store import Store

    jobs = back_up(Store.existing(folder), file)
    click.echo(f"{jobs} job{'' if jobs == 1 else 's'}, {file.stat().st_size / 1e6:.1f} MB: {file}")
