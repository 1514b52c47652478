"""Patterns as RLE, the text format of Golly and the Life lexicons.

A line `x = WIDTH, y = HEIGHT, rule = ...`, then runs: a count and a state, `$` ends a row, `!` the pattern. States are
`b` or `.` for 0, `o` or `A` for 1, `B` to `X` for 2 to 24, then two letters: `pA` is 25, `yO` is 255. Lines before the
first that begin with `#` are remarks; what follows `!` is no pattern.

A state holds a cell's channels as bits, channel 0 the lowest: one file has at most eight of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from difflogic.errors import DataError
from difflogic.netlist import Bits

MOST_CHANNELS = 8
LINE = 70
"""Characters of a line, by the format's custom."""
MOST_BYTES = 1 << 28

_HEADER = re.compile(r"\s*x\s*=\s*(\d{1,9})\s*,\s*y\s*=\s*(\d{1,9})\s*(,.*)?")
_TOKEN = re.compile(r"(\d*)\s*([p-y][A-X]|[bo.A-X$!])\s*")


def size(path: Path) -> tuple[int, int]:
    """Height and width that the header names. Raises DataError."""
    return _header(path, _lines(path))[1:]


def read(path: Path, channels: int) -> Bits:
    """uint8 `[H, W, C]`. Raises DataError with the line and the reason."""
    lines = _lines(path)
    header, height, width = _header(path, lines)
    number = header
    states = np.zeros((height, width), dtype=np.uint8)
    row, column = 0, 0
    for number, position, count, tag in _runs(path, lines, header):
        where = f"{path}: line {number}, character {position}"
        if tag == "!":
            break
        if tag == "$":
            row, column = row + count, 0
            continue
        state = _state(tag)
        if state >> channels:
            raise DataError(
                f"{where}: {tag!r} is state {state}, but a cell of this circuit has {_count(channels)}: states 0 to "
                f"{(1 << channels) - 1}."
            )
        if row >= height or column + count > width:
            raise DataError(f"{where}: the pattern leaves the {width} columns and {height} rows of its header.")
        states[row, column : column + count] = state
        column += count
    else:
        raise DataError(f"{path}: line {number}: the pattern ends without '!': the file is cut short.")
    bits: Bits = (states[..., None] >> np.arange(min(channels, MOST_CHANNELS), dtype=np.uint8) & 1).astype(np.uint8)
    return bits


def text(grid: Bits, rule: str) -> str:
    """The RLE of uint8 `[H, W, C]`, at most eight channels. `rule` names what moves it, for people."""
    states = (grid.astype(np.int64) << np.arange(grid.shape[-1])).sum(axis=-1)
    tags = ["b", "o"] if grid.shape[-1] == 1 else [".", *(_tag(state) for state in range(1, 1 << grid.shape[-1]))]
    words: list[str] = []
    skipped = 0
    for row in states:
        runs = list(_row_runs(row))
        if runs and skipped:
            words.append(f"{skipped if skipped > 1 else ''}$")
            skipped = 0
        words.extend(f"{count if count > 1 else ''}{tags[state]}" for state, count in runs)
        skipped += 1
    head = f"x = {states.shape[1]}, y = {states.shape[0]}, rule = {rule}"
    return "\n".join([head, *_wrapped([*words, "!"])]) + "\n"


def _wrapped(words: list[str]) -> Iterator[str]:
    """Lines of whole words, of at most `LINE` characters."""
    line: list[str] = []
    length = 0
    for word in words:
        if length + len(word) > LINE:
            yield "".join(line)
            line, length = [], 0
        line.append(word)
        length += len(word)
    yield "".join(line)


def _row_runs(row: npt.NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """State and length of each run, without the zeros at the end."""
    starts = np.flatnonzero(np.diff(row, prepend=-1))
    lengths = np.diff(starts, append=len(row))
    runs = list(zip(row[starts].tolist(), lengths.tolist(), strict=True))
    return iter(runs[:-1] if runs[-1][0] == 0 else runs)


def _lines(path: Path) -> list[str]:
    if path.stat().st_size > MOST_BYTES:
        raise DataError(f"{path} has more than {MOST_BYTES >> 20} MiB: give a pattern of that size as .npy.")
    try:
        return path.read_text(encoding="ascii").splitlines()
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is no RLE pattern: byte {error.start} is no ASCII character.") from error


def _header(path: Path, lines: list[str]) -> tuple[int, int, int]:
    """The number of the header's line, counted from 1, height and width."""
    for number, line in enumerate(lines, start=1):
        if line.strip() and not line.lstrip().startswith("#"):
            found = _HEADER.fullmatch(line)
            if found is None:
                raise DataError(
                    f"{path}: line {number}: expected the header 'x = WIDTH, y = HEIGHT', got {line[:60]!r}."
                )
            return number, int(found[2]), int(found[1])
    raise DataError(f"{path}: the header 'x = WIDTH, y = HEIGHT' is missing.")


def _runs(path: Path, lines: list[str], header: int) -> Iterator[tuple[int, int, int, str]]:
    """Line, character, count and tag of each run behind the header."""
    for number, line in enumerate(lines[header:], start=header + 1):
        position = len(line) - len(line.lstrip())
        while position < len(line):
            found = _TOKEN.match(line, position)
            if found is None or len(found[1]) > 9:
                raise DataError(
                    f"{path}: line {number}, character {position + 1}: expected a count and a state, $ or !, got "
                    f"{line[position : position + 12]!r}."
                )
            yield number, position + 1, int(found[1] or 1), found[2]
            if found[2] == "!":
                return
            position = found.end()


def _state(tag: str) -> int:
    if tag in "b.":
        return 0
    if tag == "o":
        return 1
    last = ord(tag[-1]) - ord("A") + 1
    return last if len(tag) == 1 else 24 * (ord(tag[0]) - ord("p") + 1) + last


def _tag(state: int) -> str:
    block, last = divmod(state - 1, 24)
    return f"{chr(ord('p') + block - 1) if block else ''}{chr(ord('A') + last)}"


def _count(channels: int) -> str:
    return "1 channel" if channels == 1 else f"{channels} channels"
