"""Read pattern files of cellular automata: RLE, plain text (`.cells`), Life 1.05 and 1.06, and MacroCell.

The format is detected from the contents of a file, since suffixes vary. The size in the header of an RLE file is only
a minimum, since some programs write `x = 0, y = 0`; a bounded rule such as `B3/S23:T30,20` determines the size.

RLE is a sequence of counts and states: `$` ends a row, `!` the pattern. States are `b` or `.` for 0, `o` or `A` for 1,
`B` to `X` for 2 to 24, and two letters for higher states: `pA` is 25, `yO` is 255.
Sources: Golly's help, *File formats*; LifeWiki, *Run Length Encoded*, *Plaintext*, *Life 1.05* and *Life 1.06*.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from difflogic.core import rules
from difflogic.errors import ConfigError, DataError
from difflogic.system import files
from difflogic.system.words import counted

FORMATS = "RLE, plain text (.cells), Life 1.05 or 1.06, or MacroCell"
MOST_BYTES = 1 << 28
MOST_CELLS = 1 << 30
MOST_STATE = 255
MOST_RUNS = 1 << 22
_HEAD = 1 << 20
"""Number of bytes at the beginning of a file that `is_pattern` reads to detect the format."""

_HEADER = re.compile(
    r"x[ \t]*=[ \t]*(\d{1,9})[ \t,]*y[ \t]*=[ \t]*(\d{1,9})(?:[ \t,]*rule[ \t]*=(.*))?.*", re.IGNORECASE
)
_RULE_LINE = re.compile(r"^#R[ \t]+(\S.*)", re.MULTILINE | re.IGNORECASE)
_POSITION = re.compile(r"^#CXRLE\b.*\bPos[ \t]*=[ \t]*(-?\d{1,9}),(-?\d{1,9})", re.MULTILINE)
_TOKEN = re.compile(r"([\d\s]*)([p-y][A-X]|[bo.A-X$!])")
_LEAF = re.compile(r"(?:[.*]{0,8}\$){1,8}")
_END = re.compile(r"\s*\Z")

Run = tuple[int, int, int, int]
"""Consecutive cells of equal state in a row: row, first column, number of cells, and state."""
Runs = npt.NDArray[np.int64]
"""Array int64 `[N, 4]` of runs, one per row."""


class Pattern(NamedTuple):
    """Contents of a pattern file: cells and rule."""

    states: npt.NDArray[np.uint8]
    """States uint8 `[H, W]` of the pattern's cells, or of the complete grid if the rule bounds the grid."""
    rule: str
    """Rule in the file's notation without the size of a grid, or "" if the file names no rule."""
    is_periodic: bool | None
    """True for a torus, False for a bounded plane, None if the grid is unbounded."""


def is_pattern(path: Path) -> bool:
    """Return whether a file contains a pattern in a supported format."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return _reader(_text(file.read(_HEAD))) is not None


def read(path: Path, channels: int = 8) -> Pattern:
    """Read a pattern file in any supported format.

    Args:
        path: File in one of `FORMATS`.
        channels: Number of bits per cell, which limits the states.

    Returns:
        The cells and the rule.

    Raises:
        DataError: The file is not a pattern, is damaged or too large, or has states that are not states of its rule.
    """
    try:
        text = _text(files.read_bounded(path, MOST_BYTES))
    except OSError as error:
        raise DataError(f"Could not read the pattern {path}: {error.strerror or error}.") from error
    if (reader := _reader(text)) is None:
        raise DataError(f"{path} is not a pattern: expected {FORMATS}.")
    try:
        pattern = reader(text)
        check_states(pattern.states, pattern.rule, channels)
    except DataError as error:
        raise DataError(f"{path}: {error}") from error
    return pattern


def bits_of(states: npt.NDArray[np.uint8], channels: int) -> npt.NDArray[np.uint8]:
    """Convert states `[...]` to bits `[..., channels]` with the lowest bit in channel 0; `channels` is at most 8."""
    return np.unpackbits(states[..., None], axis=-1, count=min(channels, 8), bitorder="little")


def _text(data: bytes) -> str:
    """Decode a file's bytes. Non-ASCII characters, which only comments may contain, may be decoded incorrectly."""
    is_wide = data.startswith((b"\xff\xfe", b"\xfe\xff"))
    text = data.decode("utf-16", "replace") if is_wide else data.removeprefix(b"\xef\xbb\xbf").decode("latin-1")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def check_states(states: npt.NDArray[np.uint8], rule: str, channels: int = 8) -> None:
    """Raise DataError if a state is not a state of the rule, or does not fit into the `channels` bits of a cell."""
    most, holder = (1 << channels) - 1, f"a cell of {counted(channels, 'channel')}"
    with suppress(ConfigError):
        if (last := rules.parse(rule).states - 1) < most:
            most, holder = last, f"the rule {rule}"
    if (largest := int(states.max(initial=0))) > most:
        raise DataError(f"the pattern has state {largest}, but {holder} has states 0 to {most}.")


def _painted(
    runs: Runs, rule: str = "", size: tuple[int, int] = (0, 0), corner: tuple[int, int] | None = None
) -> Pattern:
    """Draw runs into a grid of at least `size` or of the rule's size, with cell (0, 0) at `corner` from its centre."""
    rows, columns, counts, states = runs.T
    height = max(size[0], int((rows + 1).max(initial=0)))
    width = max(size[1], int((columns + counts).max(initial=0)))
    top = left = 0
    base, is_periodic, sides = rules.bounds(rule)
    if bounded := sides is not None and min(sides) > 0:
        corner = corner or (-(height // 2), -(width // 2))
        top, left = (first + side // 2 for first, side in zip(corner, sides, strict=True))
        if min(top, left) < 0 or top + height > sides[0] or left + width > sides[1]:
            raise DataError(
                f"the pattern of {width}x{height} cells does not fit into the grid of its rule {rule.strip()}."
            )
        height, width = sides
    if height * width > MOST_CELLS:
        raise DataError(f"expected a pattern of at most {MOST_CELLS:,} cells, got {width}x{height}.")
    if states.max(initial=0) > MOST_STATE:
        raise DataError(f"expected states from 0 to {MOST_STATE}, got {states.max()}.")
    cells = np.zeros((height, width), dtype=np.uint8)
    # `firsts` is the index of each run's first cell, minus the cells in earlier runs, which `arange` counts too.
    firsts = (rows + top) * width + columns + left - (counts.cumsum() - counts)
    cells.reshape(-1)[np.repeat(firsts, counts) + np.arange(counts.sum())] = np.repeat(states, counts)
    return Pattern(cells, base if bounded else rule.strip(), is_periodic if bounded else None)


def _cropped(runs: Runs, rule: str) -> Pattern:
    if len(runs):
        runs[:, :2] -= runs[:, :2].min(axis=0)
    return _painted(runs, rule)


def _array(runs: Iterable[Run]) -> Runs:
    return np.fromiter(chain.from_iterable(runs), dtype=np.int64).reshape(-1, 4)


def _rle(text: str) -> Pattern:
    position, named = _POSITION.search(text), _RULE_LINE.search(text)
    # Comments and the header are replaced by blanks, so that errors name the correct line and character.
    text = re.sub(r"(?m)^[ \t]*#.*$", lambda comment: " " * len(comment[0]), text)
    height = width = 0
    rule = named[1] if named else ""
    if header := _HEADER.match(text, len(text) - len(text.lstrip())):
        width, height, rule = int(header[1]), int(header[2]), header[3] or rule
        text = re.sub(r"[^\n]", " ", text[: header.end()]) + text[header.end() :]
    corner = (int(position[2]), int(position[1])) if position else None
    return _painted(_array(_runs(text)), rule, (height, width), corner)


def _runs(text: str) -> Iterator[Run]:
    row, column, position = 0, 0, 0
    while not _END.match(text, position):
        token = _TOKEN.match(text, position)
        digits = "".join(token[1].split()) if token else ""
        if token is None or len(digits) > 9:
            start = len(text) - len(text[position:].lstrip())
            line, character = text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start)
            raise DataError(
                f"line {line}, character {character}: expected a count and a state, $ or !, got "
                f"{text[start : start + 12].split(chr(10))[0]!r}."
            )
        count, tag, position = int(digits or 1), token[2], token.end()
        if tag == "!":
            return
        if tag == "$":
            row, column = row + count, 0
        else:
            yield row, column, count, _state(tag)
            column += count


def _state(tag: str) -> int:
    if tag in "b.":
        return 0
    if tag == "o":
        return 1
    last = ord(tag[-1]) - ord("A") + 1
    return last if len(tag) == 1 else 24 * (ord(tag[0]) - ord("p") + 1) + last


def _plain_text(text: str) -> Pattern:
    """Parse rows of `.` (dead cells) and `O` or `*` (living cells); lines that begin with `!` are comments."""
    rows = [row.rstrip() for row in text.rstrip().split("\n") if not row.startswith("!")]
    if unknown := sorted(set("".join(rows)) - set(".O*")):
        raise DataError(f"expected rows of . and O, got {unknown[0]!r}.")
    return _painted(_array(_cells_in(rows)), size=(len(rows), max(map(len, rows), default=0)))


def _cells_in(rows: Sequence[str], top: int = 0, left: int = 0) -> Iterator[Run]:
    for row, cells in enumerate(rows, start=top):
        for run in re.finditer(r"[O*]+", cells):
            yield row, left + run.start(), len(run[0]), 1


def _life_105(text: str) -> Pattern:
    """Parse blocks of rows, each below a line `#P COLUMN ROW`; the default rule is Life."""
    runs: list[Run] = []
    for block in re.split(r"(?m)^#P", text)[1:]:
        place, *rows = (line for line in block.split("\n") if not line.startswith("#"))
        column, row = _integers(place, 2) if place.strip() else (0, 0)
        runs += _cells_in(rows, row, column)
    named = _RULE_LINE.search(text)
    return _cropped(_array(runs), named[1] if named else "B3/S23")


def _life_106(text: str) -> Pattern:
    """Parse lines `COLUMN ROW`, one per living cell."""
    places = (_integers(line, 2) for line in text.split("\n") if line.strip() and not line.startswith("#"))
    return _cropped(_array((row, column, 1, 1) for column, row in places), "")


def _integers(line: str, count: int) -> list[int]:
    words = line.split()
    if len(words) != count or not all(re.fullmatch(r"-?[0-9]{1,18}", word) for word in words):
        raise DataError(f"expected {count} integers, got {line[:60]!r}.")
    return [int(word) for word in words]


def _macrocell(text: str) -> Pattern:
    """Parse a quadtree, children before parents, with leaves of 8x8 two-state cells or of 2x2 multi-state cells."""
    levels, nodes = [0], [_array([])]  # node 0 is empty
    for line in text.split("\n")[1:]:
        if not line.strip() or line.startswith("#"):
            continue
        if _LEAF.fullmatch(line):
            level, node = 3, _array(_cells_in(line.split("$")))
        else:
            level, *quarters = _integers(line, 5)
            children = [quarter for quarter in quarters if quarter and level > 1]
            if not 0 < level < 63 or min(quarters) < 0 or any(levels[n : n + 1] != [level - 1] for n in children):
                raise DataError(f"expected the level of a node and four earlier nodes, got {line[:60]!r}.")
            half = 1 << level - 1
            places = [(row, column, 0, 0) for row in (0, half) for column in (0, half)]
            cells = [nodes[n] if level > 1 else _array([(0, 0, 1, n)] if n else []) for n in quarters]
            node = np.concatenate([part + place for part, place in zip(cells, places, strict=True)])
            if len(node) > MOST_RUNS:
                raise DataError(f"expected a pattern of at most {MOST_RUNS:,} runs of living cells, got more.")
        levels.append(level)
        nodes.append(node)
    named = _RULE_LINE.search(text)
    return _cropped(nodes[-1], named[1] if named else "")


_LINES = r"(?:[ \t]*(?:#.*)?\n)*[ \t]*"
_READERS: dict[str, Callable[[str], Pattern]] = {
    r"\[M2\]": _macrocell,
    r"\s*#Life 1\.05": _life_105,
    r"\s*#Life 1\.06": _life_106,
    _LINES + r"[xX][ \t]*=": _rle,
    r"\s*!|\s*[.O*][.O*\s]*\Z": _plain_text,
    _LINES + r"[\dbo.A-Xp-y\s]*[$!]": _rle,
}
"""Mapping from regular expressions that match the beginning of the text to parsers."""


def _reader(text: str) -> Callable[[str], Pattern] | None:
    return next((reader for beginning, reader in _READERS.items() if re.match(beginning, text)), None)
