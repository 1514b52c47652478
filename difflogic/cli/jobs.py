"""`difflogic jobs`."""

from __future__ import annotations

import itertools
import json
from typing import Any

import click

from difflogic.cli.options import json_option, service

HEADERS = ("job", "name", "kind", "status", "epochs", "soft loss", "hard loss", "solved", "on", "submitted")
STATUSES = ("queued", "running", "paused", "done", "failed", "cancelled")


@click.command("jobs")
@click.option("--status", type=click.Choice(STATUSES), help="Only jobs that are so.")
@click.option("--kind", type=click.Choice(("train", "simplify", "export", "evaluate")), help="Only jobs of this kind.")
@click.option("--search", metavar="TEXT", help="Only jobs with this in their name or id.")
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="So many, the newest first.")
@json_option
def command(status: str | None, kind: str | None, search: str | None, limit: int, as_json: bool) -> None:
    """List your jobs on the server of DIFFLOGIC_SERVER, the newest first.

    Example: difflogic jobs --status running
    """
    with service("jobs"):
        from difflogic.serve.client import Client

    with Client.from_environment() as client:
        found = client.jobs(status=status, kind=kind, q=search, limit=min(limit, 200))
        jobs = list(itertools.islice(found, limit))
    if as_json:
        for job in jobs:
            click.echo(json.dumps(job))
        return
    if not jobs:
        click.echo("There are no such jobs." if status or kind or search else "There are no jobs yet.")
        return
    from difflogic.cli import table

    table.show(HEADERS, [_row(job) for job in jobs])
    for job in jobs:
        if job["waits_for"]:
            click.echo(f"{job['id']} waits: {job['waits_for']}")


def _row(job: dict[str, Any]) -> tuple[str, ...]:
    hard = job["hard_loss"]
    solved = ("yes" if job["solved"] else "no") if job["population"] == 1 else f"{job['solved']} of {job['population']}"
    return (
        job["id"],
        job["name"],
        job["kind"],
        job["status"] + (f", {job['wanted']} asked" if job["wanted"] else ""),
        f"{job['epoch']}/{job['epochs']}" if job["kind"] == "train" else "",
        "" if job["soft_loss"] is None else f"{job['soft_loss']:.4g}",
        "" if hard is None else str(hard),
        "" if hard is None else solved,
        job["device"] or "",
        job["created"][:16].replace("T", " "),
    )
