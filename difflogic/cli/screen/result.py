"""Printing of the result of an action: title, table and sentences, or a report in JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from difflogic.cli.screen import table
from difflogic.cli.screen.echo import FAILED, INTERRUPTED, echo
from difflogic.errors import RunFolderError
from difflogic.system.files import quoted

if TYPE_CHECKING:
    from pathlib import Path

    from difflogic.actions.result import ActionResult

COLUMNS = 80


def show(result: ActionResult, as_json: bool, write: Callable[[], Iterable[Path]] = tuple) -> int:
    """Print a result and the paths of the files that `write` writes, and return the exit code."""
    if result.told:
        echo(result.told, err=True)
    if as_json:
        echo(json.dumps(result.report))
    else:
        if result.title:
            echo(result.title)
        if result.table is not None:
            table.show(result.table.headers, result.table.rows, texts=result.table.prose)
        for line in result.words:
            echo(line)
    for path in write():
        if not as_json:
            echo(f"Written: {path}")
    return INTERRUPTED if result.stopped else 0 if result.ok else FAILED


def next_lines(commands: Sequence[tuple[str, str]], path: Path) -> list[str]:
    """Return lines that suggest `commands`, pairs of a command and its purpose; `path` replaces `{0}` in commands."""
    rows = [(command.format(quoted(path)), why) for command, why in commands]
    width = max((len(command) for command, _ in rows), default=0)
    # With a long path the purposes are left out, since a command on a single line is easy to copy.
    is_narrow = any(width + 6 + len(why) > COLUMNS for _, why in rows)
    lines = [f"  {command}" if is_narrow else f"  {command:{width}}    {why}" for command, why in rows]
    return ["Next:", *lines] if lines else []


def save(result: ActionResult, subject: str) -> list[Path]:
    """Write the files of a result to the run folder and return their paths; `subject` begins the warning on failure."""
    try:
        return [] if result.folder is None else result.keep()
    except RunFolderError as error:
        echo(f"Warning: {subject} not saved in the run folder. {error}", err=True)
        return []
