"""Writer of patterns as RLE, the format of Golly and the Life lexicons, which `difflogic.core.patterns` reads.

The bits of a state are a cell's channels, at most eight, lowest first.
"""

from collections.abc import Iterator
from itertools import groupby

import numpy as np
import numpy.typing as npt

from difflogic.core import rules
from difflogic.core.bits import Bits, pack_bits, unpack_bits
from difflogic.model.cell_netlist import CellNetlist

MOST_CHANNELS = 8
LINE = 70
"""Maximum number of characters per line of an RLE file, by convention."""


def rule_of(netlist: CellNetlist, height: int, width: int) -> tuple[str, str]:
    """Return a built-in rule of Golly for a grid of this size, and a remark if it differs from the circuit's rule.

    For one channel the rule is exact, in Life's notation or as MAP, all 512 entries in Base64. More channels, or a cell
    that becomes 1 in an empty neighbourhood, need a rule file; the result is then any Golly rule with enough states.
    """
    # All 512 neighbourhoods of channel 0, repeated for other channels, whose outputs are ignored below.
    patches = np.resize(rules.patches().T, (netlist.inputs, rules.ENTRIES))
    entries = unpack_bits(netlist.evaluate(pack_bits(patches)), rules.ENTRIES)[0]
    if netlist.channels > 1 or entries[0]:
        states = 1 << min(max(netlist.channels, 2), MOST_CHANNELS)
        remark = "Its own rule differs: difflogic export CIRCUIT --format golly writes that rule's file."
        return f"012345678//{states}", remark
    return f"{rules.name(entries)}:{'T' if netlist.periodic else 'P'}{width},{height}", ""


def numbers(grid: Bits) -> npt.NDArray[np.int64]:
    """Return the channels of each cell `[..., C]` as one number `[...]`, channel 0 as the lowest bit."""
    states: npt.NDArray[np.int64] = (grid.astype(np.int64) << np.arange(grid.shape[-1])).sum(axis=-1)
    return states


def text(grid: Bits, rule: str, remark: str = "") -> str:
    """Return the contents of an RLE file for a grid, uint8 `[H, W, C]` with at most eight channels, and its rule."""
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
    """Return a row of states as run-length words: a count, and a state, which is `b` or `o` if there are only two."""
    runs = []
    for state, group in groupby(row.tolist()):
        count = len(list(group))
        runs.append(f"{count if count > 1 else ''}{'bo'[state] if two_states else _tag(state)}")
    return runs


def wrapped(words: list[str]) -> Iterator[str]:
    """Yield lines of at most `LINE` characters that consist of complete words."""
    line: list[str] = []
    length = 0
    for word in words:
        if length + len(word) > LINE:
            yield "".join(line)
            line, length = [], 0
        line.append(word)
        length += len(word)
    yield "".join(line)


def _tag(state: int) -> str:
    if not state:
        return "."
    # Letters A to X are 1 to 24, and p to y before them add multiples of 24: 25 is pA, 255 is yO.
    block, last = divmod(state - 1, 24)
    return f"{chr(ord('p') + block - 1) if block else ''}{chr(ord('A') + last)}"
