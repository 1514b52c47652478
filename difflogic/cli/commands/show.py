"""`difflogic show`: one run in full."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from difflogic.cli.options import json_option
from difflogic.errors import RunFolderError

if TYPE_CHECKING:
    from difflogic.checkpoint import Snapshot
    from difflogic.train.catalogue import Entry
    from difflogic.train.journal import Row


@click.command("show")
@click.argument("run", type=click.Path(path_type=Path))
@json_option
def command(run: Path, as_json: bool) -> None:
    """Print the run in the folder RUN: what it is, what ran it, how it went, its models, its files, how to go on.

    Example: difflogic show runs/NAME
    """
    from difflogic import checkpoint
    from difflogic.train import manifest
    from difflogic.train.catalogue import Broken, read
    from difflogic.train.journal import read_rows

    if not run.is_dir():
        raise RunFolderError(f"{run} is no folder: expected a run folder, as `difflogic runs` lists them.")
    entry = read(run)
    if isinstance(entry, Broken):
        raise RunFolderError(f"{run} is no run folder that can be shown: {entry.why}.")
    snapshot, record = checkpoint.read(run), manifest.read(run)
    rows = read_rows(run, snapshot.seeds)
    if as_json:
        members = [_member(*each) for each in zip(snapshot.seeds, rows, strict=True)]
        click.echo(json.dumps({**entry.to_dict(), "manifest": record, "models": members, "files": _files(run)}))
        return
    click.echo("\n".join(_facts(entry, record, snapshot)))
    _show_models(snapshot, rows)
    _show_files(run)
    click.echo(f"\n{_next(entry, snapshot)}")


def _facts(entry: Entry, record: dict[str, Any], snapshot: Snapshot) -> list[str]:
    config = snapshot.members[snapshot.leader].config
    task, train, model = config.task, config.train, config.model
    engine = [record, *record["resumes"]][-1]["engine"]
    what = ", ".join(filter(None, (engine["adapter"], engine["backend"], engine["driver"])))
    timing = f"fire rate {train.fire_rate:g}" if train.asynchronous else "synchronous"
    lines = [
        f"Run:       {entry.path}, {entry.name}, {entry.status}",
        f"Task:      {task.target} from {task.start}, {task.height}x{task.width} grid, {task.steps} steps, {timing}",
        f"Circuit:   {model.gates} gates, {model.channels} channels, {model.kernels} perception kernels, "
        f"{'periodic' if model.periodic else 'zero'} boundary",
        f"Training:  epoch {snapshot.epoch} of {train.epochs}, batch {train.batch}, lr {train.lr:g}, "
        f"seed {_span(snapshot.seeds)}",
        f"Engine:    {entry.engine}: {what}; {engine['why']}",
        f"Times:     started {record['started']}, ended {record['ended'] or 'not yet'}, "
        f"resumed {len(record['resumes'])} times",
        f"Versions:  {', '.join(f'{name} {version}' for name, version in record['versions'].items())}",
    ]
    return lines + ([f"Result:    {record['result']}"] if record.get("result") else [])


def _span(seeds: list[int]) -> str:
    return str(seeds[0]) if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"


def _member(seed: int, rows: list[Row]) -> dict[str, Any]:
    from difflogic.train.journal import last_evaluated

    judged = last_evaluated(rows)
    return {
        "seed": seed,
        "last": rows[-1].to_dict() if rows else None,
        "judged": None if judged is None else judged.to_dict(),
        "first_solved": next((row.epoch for row in rows if row.hard_loss == 0), None),
    }


def _show_models(snapshot: Snapshot, rows: list[list[Row]]) -> None:
    from difflogic.cli import table
    from difflogic.train.summary import active_gates, undecided_gates

    lines = []
    for index, (member, own) in enumerate(zip(snapshot.members, rows, strict=True)):
        facts = _member(member.config.seed, own)
        judged, last, logits = facts["judged"], facts["last"], member.state.logits
        soft = None if last is None else last["soft_loss"]
        lines.append(
            (
                f"{index + 1}{' (best)' if index == snapshot.leader and len(rows) > 1 else ''}",
                str(member.config.seed),
                "" if soft is None else f"{soft:.4g}",
                "" if judged is None else str(judged["hard_loss"]),
                "" if judged is None else f"{100 * judged['accuracy']:.2f} %",
                str(facts["first_solved"] or ""),
                str(active_gates(logits)),
                str(undecided_gates(logits)),
            )
        )
    headers = ("model", "seed", "soft loss", "hard loss", "accuracy", "first exact", "active gates", "undecided")
    click.echo()
    table.show(headers, lines)


def _files(run: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in sorted(run.iterdir()) if path.is_file() and path.name[0] != "."}


def _show_files(run: Path) -> None:
    from difflogic.cli import table

    click.echo()
    table.show(("file", "kB"), [(name, f"{size / 1000:.1f}") for name, size in _files(run).items()])


def _next(entry: Entry, snapshot: Snapshot) -> str:
    from difflogic.cli.reporters import RESUME

    if entry.epoch < entry.epochs:
        return f"Go on with:  {RESUME} {entry.path}"
    return f"The run is complete. Train it further with:  {RESUME} {entry.path} --epochs {entry.epochs * 2}"
