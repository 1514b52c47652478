"""`difflogic runs`: list run folders."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from difflogic.cli.options import PATH
from difflogic.cli.screen import table
from difflogic.cli.screen.echo import echo

if TYPE_CHECKING:
    from difflogic.runs.run_list import Entry

SORTS: dict[str, Callable[[Any], Any]] = {
    "name": lambda entry: str(entry.path),
    "date": lambda entry: entry.started,
    "epochs": lambda entry: entry.epoch,
    # Runs without a loss come last, since None cannot be compared with numbers.
    "soft": lambda entry: (entry.soft_loss is None, entry.soft_loss),
    "hard": lambda entry: (entry.hard_loss is None, entry.hard_loss),
    "size": lambda entry: entry.size,
}


@click.command("runs")
@click.argument("folder", type=PATH, default="runs")
@click.option("--preset", metavar="NAME", help="Only runs of this preset or configuration name.")
@click.option("--engine", metavar="NAME", help="Only runs that last used this engine: gpu, cpu or reference.")
@click.option("--solved/--unsolved", default=None, help="Only runs that have, or have not, reached their task's goal.")
@click.option("--sort", type=click.Choice(list(SORTS)), default="date", show_default=True, help="The order, ascending.")
@click.option("--reverse", is_flag=True, help="Reverse the order.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per run, and nothing else.")
def command(folder: Path, sort: str, reverse: bool, as_json: bool, **filters: Any) -> None:
    """List the runs in FOLDER and below, by default in runs, with their progress and results.

    The losses are those of the last epoch and the last evaluation; for a population, the best model's. Run folders
    that cannot be read are listed at the end, with the reason.

    Example: difflogic runs --solved --sort hard
    """
    from difflogic.runs.run_list import Entry, find, read

    runs = [read(path) for path in find(folder)]
    entries = [run for run in runs if isinstance(run, Entry) and _is_selected(run, **filters)]
    # Users may miss a run that cannot be read, so such folders are listed with the reason.
    broken = [run for run in runs if not isinstance(run, Entry)]
    entries.sort(key=SORTS[sort], reverse=reverse)
    if as_json:
        for entry in entries:
            echo(json.dumps(entry.to_dict()))
    else:
        _show(folder, entries, len(runs) - len(broken))
    for run in broken:
        echo(f"Not listed: {run.path}, {run.why}.", err=True)


def _is_selected(entry: Entry, preset: str | None, engine: str | None, solved: bool | None) -> bool:
    return (
        preset in (None, entry.name)
        and engine in (None, entry.engine)
        and (solved is None or (entry.solved is not None and solved == (entry.solved > 0)))
    )


def _show(folder: Path, entries: list[Entry], runs: int) -> None:
    if not entries:
        echo(f"{folder}: {'no runs match' if runs else 'no runs found'}.")
        return
    headers = ["run", "what", "engine", "epochs", "soft loss", "hard loss", "solved", "status", "MB", "started"]
    rows = [_row(entry, folder) for entry in entries]
    if any(entry.score is not None for entry in entries):
        headers.insert(6, "score")
        for row, entry in zip(rows, entries, strict=True):
            row.insert(6, "" if entry.score is None else f"{entry.score:.{1 if abs(entry.score) >= 1 else 2}f}")
    table.show(headers, rows)


def _row(entry: Entry, folder: Path) -> list[str]:
    losses = table.loss_cells(entry.soft_loss, entry.hard_loss, entry.solved, entry.members)
    if entry.score is not None:
        losses = ("", "", table.solved_cell(entry.solved, entry.members))
    return [
        str(entry.path.relative_to(folder)) if entry.path != folder else str(entry.path),
        entry.name,
        entry.engine,
        f"{entry.epoch}/{entry.epochs}",
        *losses,
        entry.status,
        f"{entry.size / 1e6:.1f}",
        entry.started[:16].replace("T", " "),
    ]
