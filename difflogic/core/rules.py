"""Two-state rules on the 3x3 neighbourhood: a table of 512 entries, a life-like rule, or an elementary one by number.

Entry `n` is the cell's next state where the bits of `n`, most significant first, are its patch, row by row from the
top left: the numbering of the authors' notebook. Life-like rules are written as Golly writes them: an H at their end
says that neighbours are the six of a hexagon, a V the four at the sides. An elementary rule has Wolfram's number, of
whose eight bits number `4*left + 2*centre + right` is the next state.
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from difflogic.core.wiring import CENTRE, NEIGHBOURHOODS, PATCH
from difflogic.errors import ConfigError

ENTRIES = 1 << PATCH
GRAMMAR = (
    "a rule is written B3/S23 (B: neighbours that give birth, S: that survive, digits 0 to 8), B2/S34H on hexagons "
    f"(0 to 6), B13/S01V with four neighbours (0 to 4), 110 or W110 on a line (0 to 255), or as its {ENTRIES} entries "
    f"in {ENTRIES // 4} hexadecimal digits"
)
SUFFIXES = {"": "moore", "V": "von-neumann", "H": "hex"}
"""Behind a life-like rule, by the neighbourhood whose cells it counts."""

_TABLE = re.compile(rf"[0-9a-fA-F]{{{ENTRIES // 4}}}")
_ELEMENTARY = re.compile(r"[Ww]?(\d{1,3})")
_LIFE_LIKE = re.compile(r"[Bb]([0-8]*)/[Ss]([0-8]*)([HhVv]?)")


def patches() -> npt.NDArray[np.uint8]:
    """`[512, 9]`: all patches in the order of a table's entries."""
    bits: npt.NDArray[np.uint8] = (np.arange(ENTRIES)[:, None] >> np.arange(PATCH)[::-1] & 1).astype(np.uint8)
    return bits


def table(rule: str) -> npt.NDArray[np.uint8]:
    """uint8 `[512]`, 0 or 1. Raises ConfigError, with the grammar, for anything else."""
    entries: npt.NDArray[np.uint8]
    if _TABLE.fullmatch(rule):
        return np.unpackbits(np.frombuffer(bytes.fromhex(rule), dtype=np.uint8))
    if (elementary := _ELEMENTARY.fullmatch(rule)) and int(elementary[1]) < 1 << 8:
        left, centre, right = patches()[:, NEIGHBOURHOODS["line"]].T
        entries = int(elementary[1]) >> (4 * left + 2 * centre + right) & 1
        return entries
    if (life_like := _LIFE_LIKE.fullmatch(rule)) is None:
        raise ConfigError(f"{rule!r} is not a rule: {GRAMMAR}.")
    *digits, suffix = life_like.groups()
    centre, neighbours, most = _counted(SUFFIXES[suffix.upper()])
    if any(len(set(part)) != len(part) or any(int(digit) > most for digit in part) for part in digits):
        raise ConfigError(f"{rule!r} is not a rule: {GRAMMAR}.")
    # `B3/S23`: birth is true at 3, survival at 2 and 3; each is looked up by the number of neighbours.
    birth, survival = (np.isin(np.arange(PATCH), [int(digit) for digit in part]) for part in digits)
    entries = np.where(centre == 1, survival[neighbours], birth[neighbours]).astype(np.uint8)
    return entries


def _counted(neighbourhood: str) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8], int]:
    """Return the cell of each patch and the number of its neighbours, uint8 `[512]`, and the largest number."""
    cells = NEIGHBOURHOODS[neighbourhood]
    centre = patches()[:, CENTRE]
    return centre, patches()[:, cells].sum(axis=1, dtype=np.uint8) - centre, len(cells) - 1


def neighbourhood(rule: str) -> str | None:
    """The neighbourhood that the notation of a valid rule refers to; None for a table."""
    if _TABLE.fullmatch(rule):
        return None
    return "line" if _ELEMENTARY.fullmatch(rule) else SUFFIXES.get(rule[-1].upper(), "moore")


def read_cells(entries: npt.NDArray[np.uint8]) -> list[int]:
    """The cells of the patch that a rule depends on."""
    # A cell matters where the table's two halves, without it and with it, differ.
    halves = entries.reshape((2,) * PATCH)
    return [f for f in range(PATCH) if (halves.take(0, axis=f) != halves.take(1, axis=f)).any()]


def life_like(entries: npt.NDArray[np.uint8]) -> str | None:
    """The inverse of `table`: `B3/S23` where a rule knows only how many neighbours there are, else None."""
    return next(filter(None, (_life_like(entries, suffix) for suffix in SUFFIXES)), None)


def _life_like(entries: npt.NDArray[np.uint8], suffix: str) -> str | None:
    # Each case, a centre and a number of neighbours, must lead to one value whatever their places.
    counts = {"B": "", "S": ""}
    centres, neighbours, most = _counted(SUFFIXES[suffix])
    for centre, letter in enumerate("BS"):
        for count in range(most + 1):
            values = set(entries[(centres == centre) & (neighbours == count)].tolist())
            if len(values) > 1:
                return None
            counts[letter] += str(count) * values.pop()
    return f"B{counts['B']}/S{counts['S']}{suffix}"


def canonical(rule: str) -> str:
    """The one way to write a rule: B3/S23 in capitals and ascending, W110, a table in small digits.

    Raises ConfigError.
    """
    table(rule)
    if elementary := _ELEMENTARY.fullmatch(rule):
        return f"W{int(elementary[1])}"
    birth, _, survival = rule.upper().partition("/")
    return f"{_ascending(birth)}/{_ascending(survival)}" if survival else rule.lower()


def _ascending(digits: str) -> str:
    return digits[0] + "".join(sorted(digits[1:]))


def apply(entries: npt.NDArray[np.uint8], grid: npt.NDArray[np.uint8], periodic: bool) -> npt.NDArray[np.uint8]:
    """One generation of `grid [..., H, W]`, 0 or 1; outside it there is 0, or its other side."""
    border = [(0, 0)] * (grid.ndim - 2) + [(1, 1), (1, 1)]
    wide = np.pad(grid, border, mode="wrap" if periodic else "constant")
    height, width = grid.shape[-2:]
    # The patch of every cell as a number of nine bits, which is the entry of the table that it looks up.
    index = np.zeros(grid.shape, dtype=np.int64)
    for f in range(PATCH):
        index = index << 1 | wide[..., f // 3 : f // 3 + height, f % 3 : f % 3 + width]
    after: npt.NDArray[np.uint8] = entries[index]
    return after
