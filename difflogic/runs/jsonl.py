"""The one reader of files of JSON lines that grow by epochs: metrics.jsonl of a run, gates.jsonl of a job.

Each line is an object with an `epoch`, of agents with the `steps` so far in its place; epochs ascend, and of a
population each has a line for every member. A file grows while it is read, and may be cut back to a checkpoint and grow
again, with the same lines. Only whole lines count, up to the first that is damaged, and of a population only whole
epochs.

* `objects` reads all of it, `after` the lines after an epoch, `until` those before them: both find their place by
  looking at few lines, since epochs ascend. `last_epoch` reads the end alone.
* `Sample` thins a file to as many lines as can be drawn, and reads again only what is new.

Lines are handed on as they are, since they are JSON; what is asked of one is read by a JSON parser, so that nothing
depends on how it is spelled. For example, a run of two members that was killed in epoch 3 may leave

    {"seed": 1, "epoch": 1, ...}
    {"seed": 2, "epoch": 1, ...}
    {"seed": 1, "epoch": 2, ...}
    {"seed": 2, "epoch": 2, ...}
    {"seed": 1, "epoch": 3, ...}
    {"seed": 2, "epo

of which `after(path, 1, limit=10, members=2)` gives the lines 3 and 4, one epoch, and `last_epoch` is 3.
"""

from __future__ import annotations

import io
import itertools
import json
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

BLOCK = 1 << 16
LINE_END = b"\n"
FILES = 16
"""Files whose samples are remembered."""
SAMPLE_BLOCK = 1 << 20
NOTHING = "[]"


@dataclass(frozen=True)
class Excerpt:
    """The lines of some epochs, one after another; false where there are none."""

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


def parse(line: bytes) -> dict[str, Any] | None:
    """The object on a line; None for a line that is not whole, or damaged."""
    return _object(line) if is_whole(line) else None


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        values: dict[str, Any] = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return values


def objects(path: Path) -> Iterator[dict[str, Any]]:
    """All lines, up to the first that is damaged; none where there is no file. Raises OSError."""
    with _opened(path) as file:
        while (values := parse(file.readline())) is not None:
            yield values


def until(path: Path, epoch: int) -> bytes:
    """The lines up to an epoch and with it; empty where there is no file. Raises OSError."""
    with _opened(path) as file:
        _seek(file, epoch)
        end = file.tell()
        file.seek(0)
        return file.read(end)


def after(path: Path, epoch: int, limit: int, members: int = 1) -> Excerpt:
    """The lines of at most `limit` epochs after `epoch`; none where there is no file. Raises OSError."""
    with _opened(path) as file:
        _seek(file, epoch)
        lines = list(itertools.islice(itertools.takewhile(is_whole, file), limit * members))
    epochs = len(lines) // members
    del lines[epochs * members :]
    until = _epoch(lines[-1]) if lines else None
    if until is None:
        return Excerpt("[]", 0, epoch)
    return Excerpt(f"[{b''.join(lines).rstrip().replace(LINE_END, b',').decode()}]", epochs, until)


def last_epoch(path: Path) -> int:
    """The epoch of the last whole line; 0 where there is none. Raises OSError."""
    with _opened(path) as file:
        # A process that was killed may leave half a line at the end: the last whole one counts.
        start = file.seek(0, os.SEEK_END)
        while start > 0:
            start = _line_start(file, start - 1, 0)
            file.seek(start)
            if (found := _epoch(file.readline())) is not None:
                return found
    return 0


def _opened(path: Path) -> BinaryIO:
    """The file; an empty one where there is none yet. Raises OSError."""
    try:
        return path.open("rb")
    except FileNotFoundError:
        return io.BytesIO()


def _seek(file: BinaryIO, epoch: int) -> None:
    """Go to the first line of a later epoch. Epochs ascend, so this is a binary search."""
    low, high = 0, file.seek(0, os.SEEK_END)
    # `low` always begins a line, and what begins at `high` or later is of a later epoch. A file of 100,000 lines is
    # searched by looking at some 17 of them.
    while low < high:
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
    """Return where the line begins that `position` is in; not before `least`, which begins one."""
    while position > least:
        begin = max(least, position - BLOCK)
        file.seek(begin)
        found = file.read(position - begin).rfind(b"\n")
        if found >= 0:
            return begin + found + 1
        position = begin
    return least


def _epoch(line: bytes) -> int | None:
    """The epoch of a line; None where it is not whole, or names none."""
    values = parse(line)
    return None if values is None else values.get("epoch", values.get("steps"))


def is_whole(line: bytes) -> bool:
    """Return whether a line is an object to its end; a machine that lost its power may have left zeros."""
    return line.startswith(b"{") and line.endswith(b"}\n") and line.isascii() and b"\0" not in line


class Every:
    """Choose at most `most` of the given items, evenly."""

    def __init__(self, most: int) -> None:
        self._most, self._step, self._seen = most, 1, 0
        self.kept: dict[int, bytes] = {}

    def add(self, number: int, text: bytes) -> None:
        # With room for 4, numbers 1 2 3 4 are kept; the fifth leaves 1 3 5 and a step of 2, so that 7 comes next. So a
        # number that is left out never comes back, and a curve that is drawn from the others does not jump about.
        if self._seen % self._step == 0:
            self.kept[number] = text
        self._seen += 1
        if len(self.kept) > self._most:
            self._step *= 2
            self.kept = dict(list(self.kept.items())[::2])


class Sample:
    """The lines of one file that grows, thinned to a number that can be drawn; what was read is not read again.

    Every 2^k-th line is kept, and the last. What is kept stays while the file grows, until k does. `members` lines at a
    time belong together: those of one epoch of a population. Methods raise OSError.
    """

    def __init__(self, path: Path, most: int, members: int) -> None:
        self._path, self._most, self._members = path, most, members
        self._lock = threading.Lock()
        self._begin(0)

    def _begin(self, file: int) -> None:
        self._file, self._offset, self._number = file, 0, 0
        self._last = b""
        self._every, self._judged = Every(self._most // 2), Every(self._most // 2)

    def lines(self) -> list[bytes]:
        """Return rows as JSON, with commas between them; half of them have an evaluation, where so many do."""
        with self._lock:
            try:
                with self._path.open("rb") as file:
                    self._read_on(file)
            except FileNotFoundError:
                return []
            chosen = self._every.kept | self._judged.kept
            if self._number:
                chosen[self._number] = self._last
            return [chosen[number] for number in sorted(chosen)]

    def _read_on(self, file: BinaryIO) -> None:
        status = os.fstat(file.fileno())
        # Another file of this name, or a shorter one: a run that goes on after a crash writes its metrics anew.
        if status.st_ino != self._file or status.st_size < self._offset:
            self._begin(status.st_ino)
        file.seek(self._offset)
        together: list[bytes] = []
        for line in _lines(file):
            # Damaged, or not where a line begins, as the file was written anew meanwhile: next time from the beginning.
            if not is_whole(line):
                self._file = 0
                return
            together.append(line)
            if len(together) == self._members:
                self._add(b"".join(together), _is_judged(together[0]))
                together.clear()

    def _add(self, lines: bytes, is_judged: bool) -> None:
        self._offset += len(lines)
        self._number += 1
        self._last = lines[:-1].replace(b"\n", b",")
        self._every.add(self._number, self._last)
        if is_judged:
            self._judged.add(self._number, self._last)


def _is_judged(line: bytes) -> bool:
    """Return whether the line of an epoch has an evaluation; all members of a population have theirs at once."""
    values = _object(line) or {}
    return values.get("hard_loss", values.get("score")) is not None


def _lines(file: BinaryIO) -> Iterator[bytes]:
    rest = b""
    while block := file.read(SAMPLE_BLOCK):
        *lines, rest = (rest + block).splitlines(keepends=True)
        if rest.endswith(b"\n"):
            lines.append(rest)
            rest = b""
        yield from lines


@lru_cache(FILES)
def _sample(path: Path, most: int, members: int) -> Sample:
    return Sample(path, most, members)


def thinned(path: Path, most: int, members: int = 1) -> str:
    """About `most` lines, of a population of epochs, as a JSON list; NOTHING where there is none. Raises OSError."""
    return f"[{b','.join(_sample(path, most, members).lines()).decode()}]"
