"""Patterns as RLE, the text format of Golly and the Life lexicons.

A line `x = WIDTH, y = HEIGHT, rule = ...`, then runs: a count and a state, `$` ends a row, `!` the pattern. States are
`b` or `.` for 0, `o` or `A` for 1, `B` to `X` for 2 to 24, then two letters: `pA` is 25, `yO` is 255. Lines before the
first that begin with `#` are remarks; what follows `!` is no pattern.

A state holds a cell's channels as bits, channel 0 the lowest: one file has at most eight of them.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import numpy as np
import numpy.typing as npt

from difflogic.core import rules
from difflogic.core.bits import Bits, pack_bits, unpack_bits
from difflogic.errors import DataError
from difflogic.model.cell_netlist import CellNetlist
from difflogic.system.words import counted

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
                f"{where}: {tag!r} is state {state}, but a cell of this circuit has {counted(channels, 'channel')}: "
                f"states 0 to {(1 << channels) - 1}."
            )
        if row >= height or column + count > width:
            raise DataError(f"{where}: the pattern leaves the {width} columns and {height} rows of its header.")
        states[row, column : column + count] = state
        column += count
    else:
        raise DataError(f"{path}: line {number}: the pattern ends without '!': the file is cut short.")
    bits: Bits = (states[..., None] >> np.arange(min(channels, MOST_CHANNELS), dtype=np.uint8) & 1).astype(np.uint8)
    return bits


def rule_of(netlist: CellNetlist, height: int, width: int) -> tuple[str, str]:
    """A rule that Golly has, under which it opens a grid of so many cells; and a remark, where it is not the circuit's.

    Of one channel the rule is exact: in Life's notation, or as MAP, all 512 answers in Base64. Of more channels, or
    where something comes of nothing, which Golly shows inverted, none is exact without a file: named is one of its own
    with states enough.
    """
    # All 512 neighbourhoods of channel 0, repeated for the other channels, which a rule of one channel does not have.
    patches = np.resize(rules.patches().T, (netlist.inputs, rules.ENTRIES))
    entries = unpack_bits(netlist.evaluate(pack_bits(patches)), rules.ENTRIES)[0]
    if netlist.channels > 1 or entries[0]:
        states = 1 << min(max(netlist.channels, 2), MOST_CHANNELS)
        return (
            f"012345678//{states}",
            "Another rule moves it, a file that difflogic export CIRCUIT --format golly writes.",
        )
    name = rules.life_like(entries) or f"MAP{base64.b64encode(np.packbits(entries).tobytes()).decode().rstrip('=')}"
    return f"{name}:{'T' if netlist.periodic else 'P'}{width},{height}", ""


def numbers(grid: Bits) -> npt.NDArray[np.int64]:
    """Each cell's channels `[..., C]` as one number `[...]`, channel 0 its lowest bit."""
    states: npt.NDArray[np.int64] = (grid.astype(np.int64) << np.arange(grid.shape[-1])).sum(axis=-1)
    return states


def text(grid: Bits, rule: str, remark: str = "") -> str:
    """The RLE of uint8 `[H, W, C]`, at most eight channels. `rule` names what moves it."""
    states = numbers(grid)
    words: list[str] = []
    skipped = 0
    for row in states:
        runs = runs_of(np.trim_zeros(row, "b"), two_states=grid.shape[-1] == 1)
        if runs and skipped:
            words.append(f"{skipped if skipped > 1 else ''}$")
            skipped = 0
        words += runs
        skipped += 1
    head = f"x = {states.shape[1]}, y = {states.shape[0]}, rule = {rule}"
    return "\n".join([*([f"#C {remark}"] if remark else []), head, *wrapped([*words, "!"])]) + "\n"


def runs_of(row: npt.NDArray[np.int64], two_states: bool) -> list[str]:
    """A row of states as runs, each a count and a state; a rule of two states calls them `b` and `o`."""
    found = []
    for state, group in groupby(row.tolist()):
        count = len(list(group))
        found.append(f"{count if count > 1 else ''}{'bo'[state] if two_states else _tag(state)}")
    return found


def wrapped(words: list[str]) -> Iterator[str]:
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


def _lines(path: Path) -> list[str]:
    if path.stat().st_size > MOST_BYTES:
        raise DataError(f"{path} has more than {MOST_BYTES >> 20} MiB: give a pattern of that size as .npy.")
    try:
        return path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not an RLE pattern: byte {error.start} is not text in UTF-8.") from error


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
    if not state:
        return "."
    # Letters A to X count 1 to 24, and p to y before them how many times 24 come first: 25 is pA, 255 is yO.
    block, last = divmod(state - 1, 24)
    return f"{chr(ord('p') + block - 1) if block else ''}{chr(ord('A') + last)}"
