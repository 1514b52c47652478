"""Readers of JSON-lines files that grow during training: metrics.jsonl of a run, gates.jsonl of a job.

Each line is an object with an ascending `epoch`, or for agents the `steps` so far; a population has one line per epoch
and member. A file may grow while it is read, and may be truncated to a checkpoint and grow again. Readers stop at the
first incomplete or damaged line, and return only complete epochs of a population.

* `objects` returns all lines; `after` and `until` find the lines after or up to an epoch by binary search;
  `last_epoch` reads only the end.
* `Sample` thins a file to few enough lines to plot, and reads only new lines.

Lines are returned unchanged, since they are JSON. For example, a run of two members that was killed in epoch 3 may
leave
    {"seed": 1, "epoch": 1, ...}
    {"seed": 2, "epoch": 1, ...}
    {"seed": 1, "epoch": 2, ...}
    {"seed": 2, "epoch": 2, ...}
    {"seed": 1, "epoch": 3, ...}
    {"seed": 2, "epo

Then `after(path, 1, limit=10, members=2)` returns lines 3 and 4, which are one epoch, and `last_epoch` returns 3.
"""

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
"""Maximum number of files with a cached `Sample`."""
NOTHING = "[]"


@dataclass(frozen=True)
class Excerpt:
    """Lines of consecutive epochs; as a condition, an empty excerpt is false."""

    text: str
    """Lines as a JSON list."""
    epochs: int
    until: int
    """Last epoch of the lines, or the epoch after which lines were requested if there are none."""

    def __bool__(self) -> bool:
        return self.epochs > 0


def epochs_in(rows: int, members: int) -> int:
    """Return the number of epochs of a population of `members` models that fit into `rows` rows, but at least 1."""
    return max(1, rows // members)


def parse(line: bytes) -> dict[str, Any] | None:
    """Return the JSON object of a line, or None if the line is incomplete or damaged."""
    return _object(line) if is_whole(line) else None


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        values: dict[str, Any] = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return values


def objects(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of all lines before the first damaged line, or none without a file. Raises OSError."""
    with _opened(path) as file:
        while (values := parse(file.readline())) is not None:
            yield values


def until(path: Path, epoch: int) -> bytes:
    """Return all lines up to and including `epoch`, or b"" if there is no file. Raises OSError."""
    with _opened(path) as file:
        _seek(file, epoch)
        end = file.tell()
        file.seek(0)
        return file.read(end)


def after(path: Path, epoch: int, limit: int, members: int = 1) -> Excerpt:
    """Return the lines of at most `limit` epochs after `epoch`, or no lines without a file. Raises OSError."""
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
    """Return the epoch of the last complete line, or 0 if there is none. Raises OSError."""
    with _opened(path) as file:
        # A killed process may have left an incomplete line at the end.
        start = file.seek(0, os.SEEK_END)
        while start > 0:
            start = _line_start(file, start - 1, 0)
            file.seek(start)
            if (epoch := _epoch(file.readline())) is not None:
                return epoch
    return 0


def _opened(path: Path) -> BinaryIO:
    """Open a file for reading; a missing file is treated as empty. Raises OSError."""
    try:
        return path.open("rb")
    except FileNotFoundError:
        return io.BytesIO()


def _seek(file: BinaryIO, epoch: int) -> None:
    """Move to the first line of an epoch after `epoch`, by binary search, since epochs ascend."""
    low, high = 0, file.seek(0, os.SEEK_END)
    # `low` is always the beginning of a line; lines from `high` on belong to later epochs.
    while low < high:
        middle = (low + high) // 2
        start = _line_start(file, middle, low)
        file.seek(start)
        line = file.readline()
        epoch_there = _epoch(line)
        if epoch_there is not None and epoch_there <= epoch:
            low = start + len(line)
        else:
            high = start
    file.seek(low)


def _line_start(file: BinaryIO, position: int, least: int) -> int:
    """Return the offset of the line that contains `position`; `least` is the offset of this or an earlier line."""
    while position > least:
        begin = max(least, position - BLOCK)
        file.seek(begin)
        line_end = file.read(position - begin).rfind(b"\n")
        if line_end >= 0:
            return begin + line_end + 1
        position = begin
    return least


def _epoch(line: bytes) -> int | None:
    """Return the epoch (or environment steps) of a line, or None if the line is incomplete or has neither."""
    values = parse(line)
    return None if values is None else values.get("epoch", values.get("steps"))


def is_whole(line: bytes) -> bool:
    """Return whether a line looks like a complete object, without NUL bytes, which a power failure may leave."""
    return line.startswith(b"{") and line.endswith(b"}\n") and line.isascii() and b"\0" not in line


class Every:
    """Evenly spaced selection of at most `most` items from a stream."""

    def __init__(self, most: int) -> None:
        self._most, self._step, self._seen = most, 1, 0
        self.kept: dict[int, bytes] = {}

    def add(self, number: int, text: bytes) -> None:
        # Example: with at most 4 items, 1 2 3 4 are stored. The fifth leaves 1 3 5 and a step of 2, so 7 is next. A
        # dropped item is never stored again, so that a curve does not jump.
        if self._seen % self._step == 0:
            self.kept[number] = text
        self._seen += 1
        if len(self.kept) > self._most:
            self._step *= 2
            self.kept = dict(list(self.kept.items())[::2])


class Sample:
    """Sample of about `most` lines of a growing file, few enough to plot; each line is read once.

    The sample contains every 2^k-th line, every 2^j-th line with an evaluation, and the last line; k and j grow with
    the file. The `members` lines of an epoch count as one. Methods raise OSError.
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
        """Return one text per sampled epoch: the lines of its members, separated by commas."""
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
        # A resumed run writes its metrics again, to a new file of this name or by truncating the file.
        if status.st_ino != self._file or status.st_size < self._offset:
            self._begin(status.st_ino)
        file.seek(self._offset)
        together: list[bytes] = []
        for line in file:
            if not line.endswith(LINE_END):  # the next call reads it again: it may be complete by then
                return
            # After a damaged line, the next call reads the complete file again.
            if not is_whole(line):
                self._file = 0
                return
            together.append(line)
            if len(together) == self._members:
                values = _object(together[0]) or {}  # all members of a population are evaluated at once
                self._add(b"".join(together), values.get("hard_loss", values.get("score")) is not None)
                together.clear()

    def _add(self, lines: bytes, is_judged: bool) -> None:
        self._offset += len(lines)
        self._number += 1
        self._last = lines[:-1].replace(b"\n", b",")
        self._every.add(self._number, self._last)
        if is_judged:
            self._judged.add(self._number, self._last)


_sample = lru_cache(FILES)(Sample)


def thinned(path: Path, most: int, members: int = 1) -> str:
    """Return about `most` lines (or epochs of a population) as a JSON list, empty without a file. Raises OSError."""
    return f"[{b','.join(_sample(path, most, members).lines()).decode()}]"
