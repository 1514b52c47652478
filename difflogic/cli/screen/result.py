"""Result of an action on the screen: its title, its table and its sentences, or its report in JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from difflogic.cli.screen import table
from difflogic.cli.screen.echo import echo
from difflogic.errors import RunFolderError
from difflogic.system.files import quoted

if TYPE_CHECKING:
    from pathlib import Path

    from difflogic.actions.result import ActionResult

FAILED, INTERRUPTED = 1, 130
COLUMNS = 80


def show(found: ActionResult, as_json: bool, write: Callable[[], Iterable[Path]] = tuple) -> int:
    """Print a result, then write its files, and print their names; return the exit code."""
    if found.told:
        echo(found.told, err=True)
    if as_json:
        echo(json.dumps(found.report))
    else:
        if found.title:
            echo(found.title)
        if found.table is not None:
            table.show(found.table.headers, found.table.rows, texts=found.table.prose)
        for line in found.words:
            echo(line)
    for path in write():
        if not as_json:
            echo(f"Written: {path}")
    return INTERRUPTED if found.stopped else 0 if found.ok else FAILED


def next_lines(commands: Sequence[tuple[str, str]], path: Path) -> list[str]:
    """Return the commands to use a result in the file `path`, `{0}` in them, and the purpose of each."""
    rows = [(command.format(quoted(path)), why) for command, why in commands]
    width = max((len(command) for command, _ in rows), default=0)
    # A long path leaves no room for reasons, since a command on one line is easy to copy.
    is_narrow = any(width + 6 + len(why) > COLUMNS for _, why in rows)
    lines = [f"  {command}" if is_narrow else f"  {command:{width}}    {why}" for command, why in rows]
    return ["Next:", *lines] if lines else []


def kept(found: ActionResult, what: str) -> list[Path]:
    """Write the files into the run folder; a folder that is read-only causes a warning."""
    try:
        return [] if found.folder is None else found.keep()
    except RunFolderError as error:
        echo(f"Warning: {what} not kept in the run folder. {error}", err=True)
        return []
