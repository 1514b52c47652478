"""Two-state rules on the 3x3 neighbourhood: a table of 512 entries, or a life-like rule in B/S notation.

Entry `n` is the cell's next state where the bits of `n`, most significant first, are its patch, row by row from the
top left: the numbering of the authors' notebook.
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from difflogic.core.wiring import CENTRE, PATCH
from difflogic.errors import ConfigError

ENTRIES = 1 << PATCH
GRAMMAR = (
    "a rule is written B3/S23 (B: neighbours that give birth, S: that survive, digits 0 to 8), or as its "
    f"{ENTRIES} entries in {ENTRIES // 4} hexadecimal digits"
)


def patches() -> npt.NDArray[np.uint8]:
    """`[512, 9]`: all patches in the order of a table's entries."""
    bits: npt.NDArray[np.uint8] = (np.arange(ENTRIES)[:, None] >> np.arange(PATCH)[::-1] & 1).astype(np.uint8)
    return bits


def table(rule: str) -> npt.NDArray[np.uint8]:
    """uint8 `[512]`, 0 or 1. Raises ConfigError, with the grammar, for anything else."""
    if re.fullmatch(rf"[0-9a-fA-F]{{{ENTRIES // 4}}}", rule):
        return np.unpackbits(np.frombuffer(bytes.fromhex(rule), dtype=np.uint8))
    life_like = re.fullmatch(r"[Bb]([0-8]*)/[Ss]([0-8]*)", rule)
    if life_like is None or any(len(set(digits)) != len(digits) for digits in life_like.groups()):
        raise ConfigError(f"{rule!r} is no rule: {GRAMMAR}.")
    # `B3/S23`: birth is true at 3, survival at 2 and 3; each is looked up by the number of neighbours.
    birth, survival = (np.isin(np.arange(PATCH), [int(digit) for digit in digits]) for digits in life_like.groups())
    neighbourhoods = patches()
    centre = neighbourhoods[:, CENTRE]
    neighbours = neighbourhoods.sum(axis=1) - centre
    entries: npt.NDArray[np.uint8] = np.where(centre == 1, survival[neighbours], birth[neighbours]).astype(np.uint8)
    return entries


def life_like(entries: npt.NDArray[np.uint8]) -> str | None:
    """The inverse of `table`: `B3/S23` where a rule knows only how many neighbours there are, else None."""
    # Each of the eighteen cases, a centre and a number of neighbours, must lead to one value whatever their places.
    counts = {"B": "", "S": ""}
    neighbourhoods = patches()
    neighbours = neighbourhoods.sum(axis=1) - neighbourhoods[:, CENTRE]
    for centre, letter in enumerate("BS"):
        for count in range(PATCH):
            values = set(entries[(neighbourhoods[:, CENTRE] == centre) & (neighbours == count)].tolist())
            if len(values) > 1:
                return None
            counts[letter] += str(count) * values.pop()
    return f"B{counts['B']}/S{counts['S']}"


def canonical(rule: str) -> str:
    """The one way to write a rule: B3/S23 in capitals and ascending, a table in small digits. Raises ConfigError."""
    table(rule)
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
