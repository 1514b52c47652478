"""Rows of a run's metrics.jsonl by epoch, without reading what comes before them.

The file grows while it is read, and may be cut back to a checkpoint and grow again, with the same rows. Only whole
lines count, up to the first that is damaged, and of a population only whole epochs.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from difflogic.train.journal import JSONL

Row = dict[str, Any]

BLOCK = 1 << 16
EPOCH = re.compile(rb'"epoch": ?([0-9]+)')


def epochs_in(rows: int, members: int) -> int:
    """Whole epochs in so many rows, at least one."""
    return max(1, rows // members)


def after(run: Path, epoch: int, limit: int, members: int = 1) -> list[Row]:
    """Rows of at most `limit` epochs after `epoch`; none where there is no file. Raises OSError."""
    try:
        with (run / JSONL).open("rb") as file:
            _seek(file, epoch)
            return list(_whole(_rows(file), limit, members))
    except FileNotFoundError:
        return []


def thinned(run: Path, most: int, members: int, interval: int) -> list[Row]:
    """Rows of about `most` epochs, evenly spread; half of them such as have an evaluation, every `interval` epochs."""
    try:
        with (run / JSONL).open("rb") as file:
            end = _last_epoch(file)
            chosen = set(range(1, end + 1))
            if end > most:
                chosen = {1, end, *_spread(range(interval, end + 1, interval), most // 2)}
                chosen |= set(_spread(range(1, end + 1), most - len(chosen)))
            return list(_picked(file, sorted(chosen), members))
    except FileNotFoundError:
        return []


def _picked(file: BinaryIO, epochs: list[int], members: int) -> Iterator[Row]:
    """The rows of some epochs, found one after another; of neighbours the next is read without a search."""
    here = None
    file.seek(0)
    for epoch in epochs:
        if epoch - 1 != (here or 0):
            _seek(file, epoch - 1)
        yield from _whole(_rows(file), 1, members)
        here = epoch


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


def _spread(values: Sequence[int], count: int) -> list[int]:
    """So many of them, the first and the last included."""
    if count <= 0:
        return []
    if len(values) <= count:
        return list(values)
    return [values[index * (len(values) - 1) // max(1, count - 1)] for index in range(count)]


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


def _rows(file: BinaryIO) -> Iterator[Row]:
    while line := file.readline():
        if not line.endswith(b"\n"):
            return
        try:
            row = json.loads(line)
        except ValueError:
            return
        yield row


def _whole(rows: Iterator[Row], limit: int | None, members: int) -> Iterator[Row]:
    """Epochs of which every member's row is there."""
    epoch: list[Row] = []
    done = 0
    for row in rows:
        epoch.append(row)
        if len(epoch) == members:
            yield from epoch
            epoch = []
            done += 1
            if done == limit:
                return
