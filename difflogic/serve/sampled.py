"""Lines of files that grow, thinned to a number that can be drawn. What was read once is not read again.

Of what there is every 2^k-th is kept, and the last; what is kept stays so while a file grows, until k does.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from difflogic.serve.rows import is_whole

FILES = 16
"""So many are remembered."""
BLOCK = 1 << 20
NOTHING = "[]"
NOT_JUDGED = b'"hard_loss": null'
"""In a row of an epoch without an evaluation."""


class Every:
    """At most `most` of what it is given, evenly chosen, by number."""

    def __init__(self, most: int) -> None:
        self._most, self._step, self._seen = most, 1, 0
        self.kept: dict[int, bytes] = {}

    def add(self, number: int, text: bytes) -> None:
        if self._seen % self._step == 0:
            self.kept[number] = text
        self._seen += 1
        if len(self.kept) > self._most:
            self._step *= 2
            self.kept = dict(list(self.kept.items())[::2])


class Sample:
    """Of one file, of which `members` lines at a time belong together. Methods raise OSError."""

    def __init__(self, path: Path, most: int, members: int) -> None:
        self._path, self._most, self._members = path, most, members
        self._lock = threading.Lock()
        self._begin(0)

    def _begin(self, file: int) -> None:
        self._file, self._offset, self._number = file, 0, 0
        self._last = b""
        self._every, self._judged = Every(self._most // 2), Every(self._most // 2)

    def lines(self) -> list[bytes]:
        """As JSON, with commas between such as belong together; half of them have an evaluation, where so many do."""
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
        if status.st_ino != self._file or status.st_size < self._offset:  # written anew: by a try that follows a crash
            self._begin(status.st_ino)
        file.seek(self._offset)
        together: list[bytes] = []
        for line in _lines(file):
            if not is_whole(line):  # damaged, or not where a line begins: next time from the beginning
                self._file = 0
                return
            together.append(line)
            if len(together) == self._members:
                self._add(b"".join(together))
                together.clear()

    def _add(self, lines: bytes) -> None:
        self._offset += len(lines)
        self._number += 1
        self._last = lines[:-1].replace(b"\n", b",")
        self._every.add(self._number, self._last)
        if NOT_JUDGED not in lines:
            self._judged.add(self._number, self._last)


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Those that are ended."""
    rest = b""
    while block := file.read(BLOCK):
        *lines, rest = (rest + block).splitlines(keepends=True)
        if rest.endswith(b"\n"):
            lines.append(rest)
            rest = b""
        yield from lines


class Samples:
    """Those of the files that were last asked for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[Path, int], Sample] = OrderedDict()

    def of(self, path: Path, most: int, members: int = 1) -> str:
        """About `most` lines, of a population of epochs, as a JSON list; NOTHING where there is none.

        Raises OSError.
        """
        with self._lock:
            found = self._known.setdefault((path, most), Sample(path, most, members))
            self._known.move_to_end((path, most))
            if len(self._known) > FILES:
                self._known.popitem(last=False)
        return f"[{b','.join(found.lines()).decode()}]"
