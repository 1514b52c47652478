"""Parse and write the notations of cellular automaton rules on the 3x3 neighbourhood.

The table of a two-state rule has 512 entries. Entry `n` is the next state of a cell whose 3x3 patch, row by row from
the top left, equals the bits of `n`, most significant first, as in the authors' notebook and in MAP notation.
Sources: Golly's help, *QuickLife*, *Generations* and *Bounded grids*; Hensel's letters for isotropic rules; Wolfram's
numbers, whose bit `4*left + 2*centre + right` is the next state.
"""

import base64
import re
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import numpy.typing as npt

from difflogic.core.wiring import CENTRE, NEIGHBOURHOODS, PATCH
from difflogic.errors import ConfigError

ENTRIES = 1 << PATCH
MOST_STATES = 256
HISTORY_STATES = 7
GRAMMAR = (
    "expected B3/S23 (B: counts of neighbours for birth, S: for survival, digits 0 to 8) or 23/3, B2-a/S12 with "
    "Hensel's letters, B2/S34H on hexagons (0 to 6), B13/S01V with four neighbours (0 to 4), B2/S/C3 with 3 states, "
    f"B3/S23History, 110 or W110 on a line (0 to 255), MAP and Base64, or the {ENTRIES} entries in {ENTRIES // 4} "
    "hexadecimal digits; a grid may follow, such as :T30,20 or :P30,20"
)
SUFFIXES = {"": "moore", "V": "von-neumann", "H": "hex"}
"""Mapping from the final letter of a rule ("" for none) to the neighbourhood that the rule counts."""

Table = npt.NDArray[np.uint8]

_PART = r"((?:[0-8](?:-?[aceijknqrtwyz]*))*)"
_COUNTED = re.compile(rf"([bs]?){_PART}([/_]?[bs]|[/_]){_PART}([hv]?)(?:[/_][cg]?(\d+))?([hv]?)(history)?")
_DIGITS = re.compile(rf"[0-9a-f]{{{ENTRIES // 4}}}")
_ELEMENTARY = re.compile(r"w?(\d{1,3})")
_MAP = re.compile(r"map[a-z0-9_+/-]+={0,2}", re.IGNORECASE | re.ASCII)
_BOUNDS = re.compile(r"(.*):([tp])(\d{1,5})(?:,(\d{1,5}))?", re.IGNORECASE)
_REFUSED = {
    r"r(\d+),.*": "Larger than Life, which reads cells up to {} away",
    r"ms?,?d?(?:\d+[,;]){15}\d+": "a Margolus rule, which changes blocks of 2x2 cells",
    r"(?![0-9a-f]{128}(?::|$))3d[a-z]{0,2}[\d/.,]+.*": "a rule of three dimensions",
    r".*:k[\d*,+-]+": "on a Klein bottle, not a torus (T) or plane (P)",
    r".*:c[\d,]+": "on a cross-surface, not a torus (T) or plane (P)",
    r".*:s\d+": "on a sphere, not a torus (T) or plane (P)",
    r".*:t[\d,]+[*+-][\d,*+-]*": "on a shifted torus",
    r".*:[tp](?:0+(?:,\d+)?|\d+,0+)": "on a grid without an end",
}
"""Mapping from regular expressions of other programs' unsupported notations to their descriptions."""
_READ = f"difflogic reads rules of the 3x3 neighbourhood with at most {MOST_STATES} states, on a torus or a plane"
_LETTERS = {
    1: {"c": 1, "e": 2},
    2: dict(zip("ceaikn", (5, 10, 3, 40, 33, 68), strict=True)),
    3: dict(zip("ceaijknqry", (69, 42, 11, 7, 14, 98, 13, 70, 41, 97), strict=True)),
    4: dict(zip("ceaijknqrtwyz", (325, 170, 15, 45, 106, 99, 71, 102, 43, 105, 78, 101, 108), strict=True)),
}
"""Hensel's letters by number of neighbours, each with an example patch; 5 to 7 have the inverted patches of 3 to 1."""


@dataclass(frozen=True, eq=False)
class Rule:
    """Rule parsed from its notation."""

    name: str
    """Canonical notation without a grid: for example B3/S23 or W110, or the table in lower-case hexadecimal digits."""
    table: Table
    """Next state for each patch of living cells, uint8 `[512]`: 1 if the cell lives after a step."""
    neighbourhood: str | None = "moore"
    """Name of the neighbourhood; None if the notation is a table."""
    states: int = 2
    """Number of states: 2, more for Generations (dying cells count up to the last state), or 7 for LifeHistory."""
    has_history: bool = False
    periodic: bool = True
    size: tuple[int, int] | None = None
    """Height and width of the grid, or None if the notation does not name a grid."""


def parse(rule: str) -> Rule:
    """Parse the notation of a rule.

    Args:
        rule: Any notation in `GRAMMAR`; case and blanks are ignored.

    Returns:
        The rule.

    Raises:
        ConfigError: The text is not a rule, or the rule is unsupported.
    """
    if reason := refusal(rule):
        raise ConfigError(reason)
    text, periodic, size = bounds(rule)
    parsed = _map(text) if _MAP.fullmatch(text) else _plain(text.lower())
    if parsed is None:
        raise ConfigError(f"{rule!r} is not a rule: {GRAMMAR}.")
    return parsed if size is None else replace(parsed, periodic=periodic, size=size)


def refusal(rule: str) -> str:
    """Return the reason why `rule` is unsupported if it is a notation of another program, otherwise ""."""
    text = "".join(rule.lower().split())
    for pattern, reason in _REFUSED.items():
        if match := re.fullmatch(pattern, text):
            return f"{rule!r} is {reason.format(*match.groups())}: {_READ}."
    if (match := _COUNTED.fullmatch(text)) and int(match[6] or 2) > MOST_STATES:
        return f"{rule!r} has {match[6]} states: {_READ}."
    return ""


def bounds(rule: str) -> tuple[str, bool, tuple[int, int] | None]:
    """Return the notation without a grid, whether the grid is a torus (default), and its height and width or None."""
    text = "".join(rule.split())
    if (match := _BOUNDS.fullmatch(text)) is None:
        return text, True, None
    base, kind, width, height = match.groups()
    return base, kind in "Tt", (int(height or width), int(width))


def grid(rule: str) -> str:
    """Return the part of a notation that specifies a grid, such as `:P30,20`, or "" if the notation has no grid."""
    return "".join(rule.split())[len(bounds(rule)[0]) :]


def _plain(text: str) -> Rule | None:
    """Parse a rule in hexadecimal digits, Wolfram's digits or neighbour counts; return None if it is none of these."""
    if _DIGITS.fullmatch(text):
        return Rule(text, np.unpackbits(np.frombuffer(bytes.fromhex(text), dtype=np.uint8)), None)
    if (elementary := _ELEMENTARY.fullmatch(text)) and (number := int(elementary[1])) < 1 << 8:
        left, centre, right = patches()[:, NEIGHBOURHOODS["line"]].T
        return Rule(f"W{number}", number >> (4 * left + 2 * centre + right) & 1, "line")
    if text == "lifehistory":
        text = "b3/s23history"
    if (match := _COUNTED.fullmatch(text)) is None:
        return None
    first, left, mark, right, suffix, states, behind, history = match.groups()
    suffix, count, second = (suffix or behind).upper(), int(states or 2), mark.strip("/_")
    birth, survival = (left, right) if first == "b" or second == "s" else (right, left)
    if (second and first in (second, mark[:-1])) or count < 2 or (history and states):
        return None
    classes, next_state = _classes(suffix), np.zeros((2, PATCH, 128), dtype=np.uint8)
    for centre, part in enumerate((birth, survival)):
        cases = re.findall(r"(\d)(-?)([a-z]*)", part)
        for digit, minus, letters in cases:
            codes = {code for number, code in set(map(tuple, classes[:, 1:].tolist())) if number == int(digit)}
            named = set(map(ord, letters))
            if not codes or not named <= codes or len(named) < len(letters):
                return None
            next_state[centre, int(digit), list(codes - named if minus or not named else named)] = 1
        if len({digit for digit, *_ in cases}) < len(cases):
            return None
    table: Table = next_state[tuple(classes.T)]
    name = f"{_by_counts(table, suffix)}{f'/C{count}' if count > 2 else ''}{'History' if history else ''}"
    return Rule(name, table, SUFFIXES[suffix], HISTORY_STATES if history else count, bool(history))


def _map(text: str) -> Rule | None:
    """Parse a rule in MAP notation (Base64); return None if its length does not match a neighbourhood."""
    # Both Base64 alphabets are accepted, since commands read a rule as a path, and a path cannot contain `//`.
    digits = text[3:].rstrip("=").replace("_", "/").replace("-", "+")
    for neighbourhood, cells in NEIGHBOURHOODS.items():
        if len(digits) == -(-(1 << len(cells)) // 6) and neighbourhood != "line":
            bits = np.unpackbits(np.frombuffer(base64.b64decode(digits + "=" * (-len(digits) % 4)), dtype=np.uint8))
            table = bits[patches()[:, cells] @ (1 << np.arange(len(cells))[::-1])]
            name = counted(table) or np.packbits(table).tobytes().hex()
            return Rule(name, table, neighbourhood if len(cells) < PATCH else None)
    return None


def patches() -> Table:
    """Return all 3x3 patches `[512, 9]` in the order of a table's entries."""
    return (np.arange(ENTRIES)[:, None] >> np.arange(PATCH)[::-1] & 1).astype(np.uint8)


@cache
def _classes(suffix: str) -> npt.NDArray[np.int64]:
    """Return each patch's centre, number of living neighbours, and Hensel's letter (ASCII code or 0), `[512, 3]`."""
    all_patches = patches().astype(np.int64)
    centres = all_patches[:, CENTRE]
    counts = all_patches[:, NEIGHBOURHOODS[SUFFIXES[suffix]]].sum(axis=1) - centres
    codes = np.zeros(ENTRIES, dtype=np.int64)
    for count, letters in _LETTERS.items() if not suffix else ():
        for letter, mask in letters.items():
            square = all_patches[mask].reshape(3, 3)
            images = [np.rot90(patch, quarters).ravel() for patch in (square, square.T) for quarters in range(4)]
            masks = np.array(images) @ (1 << np.arange(PATCH)[::-1])
            inverted = masks ^ (ENTRIES - 1 - (1 << CENTRE))
            codes[[masks, masks | 1 << CENTRE]] = ord(letter)
            if count < 4:
                codes[[inverted, inverted | 1 << CENTRE]] = ord(letter)
    return np.stack([centres, counts, codes], axis=1)


def table(rule: str) -> Table:
    """Return the table of a two-state rule's notation, uint8 `[512]`, 0 or 1. Raises ConfigError for other texts."""
    parsed = parse(rule)
    if parsed.states > 2:
        raise ConfigError(
            f"Expected a rule of two states, got {rule!r} of {parsed.states} states: use `difflogic build` to make its "
            "circuit."
        )
    return parsed.table


def read_cells(entries: Table) -> list[int]:
    """Return the indices of the cells of a patch on which a rule's table depends."""
    # The table depends on a cell if its two halves, for the cell off and on, differ.
    halves = entries.reshape((2,) * PATCH)
    return [f for f in range(PATCH) if (halves.take(0, axis=f) != halves.take(1, axis=f)).any()]


def name(entries: Table) -> str:
    """Return a table's notation for Golly: counts and letters (see `counted`) if possible, otherwise MAP."""
    return counted(entries) or f"MAP{base64.b64encode(np.packbits(entries).tobytes()).decode().rstrip('=')}"


def counted(entries: Table) -> str | None:
    """Return a table's notation by neighbour counts, with Hensel's letters if needed; None if this is impossible."""
    names = filter(None, (_by_counts(entries, suffix) for suffix in SUFFIXES))
    return min(names, key=lambda name: any(map(str.islower, name)), default=None)  # letters only if needed


def _by_counts(entries: Table, suffix: str) -> str | None:
    # All patches of a class (a centre, a number of neighbours and a letter) must have equal values.
    values: dict[tuple[int, ...], set[int]] = {}
    for key, value in zip(map(tuple, _classes(suffix).tolist()), entries.tolist(), strict=True):
        values.setdefault(key, set()).add(value)
    if any(len(states) > 1 for states in values.values()):
        return None
    parts = ["", ""]
    for centre, count in sorted({key[:2] for key in values}):
        off, on = (
            "".join(sorted(chr(key[2]) for key in values if key[:2] == (centre, count) and values[key] == {value}))
            for value in (0, 1)
        )
        if on:
            letters = "" if not off else on if len(on) <= len(off) + 1 else f"-{off}"
            parts[centre] += f"{count}{letters}"
    return f"B{parts[0]}/S{parts[1]}{suffix}"


def apply(entries: Table, grid: Table, periodic: bool) -> Table:
    """Return `grid [..., H, W]`, 0 or 1, after one step of a rule's table; the grid wraps around if `periodic`."""
    border = [(0, 0)] * (grid.ndim - 2) + [(1, 1), (1, 1)]
    wide = np.pad(grid, border, mode="wrap" if periodic else "constant")
    height, width = grid.shape[-2:]
    # Index of each cell's entry in the table: an integer whose nine bits are the cell's patch.
    index = np.zeros(grid.shape, dtype=np.int64)
    for f in range(PATCH):
        index = index << 1 | wide[..., f // 3 : f // 3 + height, f % 3 : f % 3 + width]
    return entries[index]
