"""`difflogic gc`: make room in a store."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from difflogic.cli.options import json_option, megabytes
from difflogic.errors import UsageError


@click.command("gc")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--keep-days", type=click.FloatRange(min=0), metavar="DAYS", help="Delete jobs that ended longer ago.")
@click.option("--quota", type=megabytes, metavar="MB", help="Delete the oldest that ended until all jobs take so much.")
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@json_option
def command(folder: Path, keep_days: float | None, quota: int | None, dry_run: bool, as_json: bool) -> None:
    """Delete old jobs of the store in FOLDER, with all their files, and files that belong to no job.

    Jobs that wait, run or pause stay, and so does what a follow-up job still needs. The store may be in use.

    Example: difflogic gc difflogic-jobs --keep-days 30 --quota 20000
    """
    from difflogic.serve.retention import collect
    from difflogic.serve.store import Store

    if keep_days is None and quota is None:
        raise UsageError("Say what may go: --keep-days DAYS, --quota MB, or both.")
    found = collect(Store.existing(folder), keep_days, quota, dry_run)
    if as_json:
        click.echo(json.dumps({**asdict(found), "dry_run": dry_run}))
        return
    for each in found.removed:
        click.echo(f"{each.name}  {each.bytes / 1e6:.1f} MB  {each.why}")
    verb = "would be deleted" if dry_run else "deleted"
    freed = sum(each.bytes for each in found.removed)
    click.echo(f"{len(found.removed)} {verb}, {freed / 1e6:.1f} MB; {found.bytes_left / 1e6:.1f} MB stay.")
