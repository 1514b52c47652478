"""Golly: `bgolly` runs the pattern for a hundred generations on the pattern's own grid."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from difflogic.circuits import tools
from difflogic.circuits.export import golly
from difflogic.circuits.export.proofs.common import after, folder_of
from difflogic.circuits.export.text import Files
from difflogic.errors import ExportError
from difflogic.netlist import Netlist

GENERATIONS = 100

_WORDS = re.compile(r"(\d*)(?:([p-y]?)([A-X])|([.bo$!]))")


def verify(netlist: Netlist, name: str, files: Files) -> list[str]:
    """Raises ExportError and ToolError."""
    rule = f"{name}_ca"
    start = golly.start(netlist)
    height, width = start.shape[:2]
    boundary = f"{'T' if netlist.periodic else 'P'}{width},{height}"
    with folder_of(files) as folder:
        arguments = ["-a", "RuleLoader", "-s", f"{folder}/", "-r", f"{rule}:{boundary}", "-m", str(GENERATIONS)]
        tools.run_in(folder, "bgolly", *arguments, "-o", "after.rle", f"{rule}.rle")
        found = decoded((folder / "after.rle").read_text())
    state = after(netlist, start, GENERATIONS)
    expected = golly.first_state(netlist) + (state.astype(np.int64) << np.arange(netlist.channels)).sum(axis=-1)
    if not np.array_equal(found, cut(expected)):
        raise ExportError(f"bgolly shows another grid than the circuit after {GENERATIONS} generations.")
    where = "torus" if netlist.periodic else "bounded plane"
    return [f"bgolly agrees after {GENERATIONS} generations on a {where} of {width}x{height}"]


def cut(grid: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The rectangle that holds everything but state 0: bgolly writes no more."""
    rows, columns = np.nonzero(grid)
    if not len(rows):
        return np.zeros((0, 0), dtype=np.int64)
    return grid[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]


def decoded(text: str) -> npt.NDArray[np.int64]:
    """The states of a pattern in run-length code."""
    head, code = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).split("\n", 1)
    width, height = (int(number) for number in re.findall(r"[xy] = (\d+)", head))
    grid = np.zeros((height, width), dtype=np.int64)
    y = x = 0
    for digits, prefix, letter, plain in _WORDS.findall(code.replace("\n", "")):
        count = int(digits or 1)
        if plain == "$":
            y, x = y + count, 0
        elif plain != "!":
            state = "bo".find(plain) if plain in "bo" and plain else 0
            if letter:
                state = ord(letter) - 64 + 24 * (ord(prefix) - ord("p") + 1 if prefix else 0)
            grid[y, x : x + count] = state
            x += count
    return grid
