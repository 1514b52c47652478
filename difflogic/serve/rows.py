"""Rows of a run's metrics.jsonl by epoch, without reading what comes before them, and as they are: they are JSON.

The file grows while it is read, and may be cut back to a checkpoint and grow again, with the same rows. Only whole
lines count, up to the first that is damaged, and of a population only whole epochs.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from difflogic.train.journal import JSONL

BLOCK = 1 << 16
LINE_END = b"\n"
EPOCH = re.compile(rb'"epoch": ?([0-9]+)')


@dataclass(frozen=True)
class Rows:
    """Of some epochs one after another; false where there are none."""

    text: str
    """A JSON list."""
    epochs: int
    until: int
    """The last epoch."""

    def __bool__(self) -> bool:
        return self.epochs > 0


def epochs_in(rows: int, members: int) -> int:
    """Whole epochs in so many rows, at least one."""
    return max(1, rows // members)


def after(run: Path, epoch: int, limit: int, members: int = 1) -> Rows:
    """Rows of at most `limit` epochs after `epoch`; none where there is no file. Raises OSError."""
    try:
        with (run / JSONL).open("rb") as file:
            _seek(file, epoch)
            lines = list(itertools.islice(_whole_lines(file), limit * members))
    except FileNotFoundError:
        lines = []
    epochs = len(lines) // members
    del lines[epochs * members :]
    until = _epoch(lines[-1]) if lines else None
    if until is None:
        return Rows("[]", 0, epoch)
    return Rows(f"[{b''.join(lines).rstrip().replace(LINE_END, b',').decode()}]", epochs, until)


def last(run: Path) -> int:
    """The epoch of the last row; 0 where there is none. Raises OSError."""
    try:
        with (run / JSONL).open("rb") as file:
            return _last_epoch(file)
    except FileNotFoundError:
        return 0


def _last_epoch(file: BinaryIO) -> int:
    """Of the last whole line; 0 where there is none."""
    size = os.fstat(file.fileno()).st_size
    start = size
    while start > 0:
        start = _line_start(file, start - 1, 0)
        file.seek(start)
        line = file.readline()
        if (found := _epoch(line)) is not None:
            return found
    return 0


def _seek(file: BinaryIO, epoch: int) -> None:
    """To the first line of a later epoch: epochs ascend, so half of the file is left out at each look."""
    low, high = 0, os.fstat(file.fileno()).st_size
    while low < high:  # `low` begins a line, and what begins at `high` or later is of a later epoch
        middle = (low + high) // 2
        start = _line_start(file, middle, low)
        file.seek(start)
        line = file.readline()
        found = _epoch(line)
        if found is not None and found <= epoch:
            low = start + len(line)
        else:
            high = start
    file.seek(low)


def _line_start(file: BinaryIO, position: int, least: int) -> int:
    """Where the line begins that `position` is in; not before `least`, which begins one."""
    while position > least:
        begin = max(least, position - BLOCK)
        file.seek(begin)
        found = file.read(position - begin).rfind(b"\n")
        if found >= 0:
            return begin + found + 1
        position = begin
    return least


def _epoch(line: bytes) -> int | None:
    """None for a line that is not whole."""
    found = EPOCH.search(line) if line.endswith(b"\n") else None
    return None if found is None else int(found[1])


def is_whole(line: bytes) -> bool:
    """Whether a line is an object to its end; a machine that lost its power may have left zeros."""
    return line.startswith(b"{") and line.endswith(b"}\n") and line.isascii() and b"\0" not in line


def _whole_lines(file: BinaryIO) -> Iterator[bytes]:
    while is_whole(line := file.readline()):
        yield line
