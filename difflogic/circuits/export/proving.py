"""What every proof uses: a folder with the files, vectors, grids, and the sentence when something differs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from difflogic import prng
from difflogic.circuits.export.text import Files
from difflogic.circuits.export.vectors import Vectors, draw_vectors, random_bits
from difflogic.errors import ExportError
from difflogic.netlist import Bits, Netlist
from difflogic.straight_line import lines

MOST_VECTORS = 1 << 20
"""All neighbourhoods of a circuit that reads up to 20 inputs."""
RANDOM_VECTORS = 1_000_000
_SEED = 5


@contextmanager
def folder_of(files: Files) -> Iterator[Path]:
    """A temporary folder that holds the files."""
    with TemporaryDirectory(prefix="difflogic-") as name:
        folder = Path(name)
        for file, content in files.items():
            (folder / file).write_bytes(content if isinstance(content, bytes) else content.encode())
        yield folder


def vectors_for(netlist: Netlist, work: float = 1e10) -> Vectors:
    """All neighbourhoods where they are at most 2^20, else 1e6 random ones; gates times vectors are at most `work`."""
    most = int(work // max(1, len(lines(netlist))))
    if (vectors := draw_vectors(netlist, min(MOST_VECTORS, most))).exhaustive:
        return vectors
    return draw_vectors(netlist, min(RANDOM_VECTORS, most))


def check_cells(netlist: Netlist, vectors: Vectors, answers: Bits, what: str) -> str:
    """The sentence of a proof by vectors; `answers` uint8 `[C, samples]`. Raises ExportError."""
    wrong = np.flatnonzero((answers != vectors.outputs(netlist)).any(axis=0))
    if len(wrong):
        ones = [netlist.bit_name(bit) for bit in np.flatnonzero(vectors.inputs[:, wrong[0]]).tolist()]
        raise ExportError(
            f"{what} differs from the circuit on {len(wrong)} of {vectors.described()}, first where the ones are "
            f"{', '.join(ones) or 'none'}."
        )
    return f"{what} agrees on {vectors.described()}"


def random_grid(netlist: Netlist, height: int, width: int) -> Bits:
    """A start uint8 `[H, W, C]`, the same each time."""
    return random_bits(prng.key_from_seed(_SEED), (height, width, netlist.channels))


def after(netlist: Netlist, grid: Bits, steps: int) -> Bits:
    """The grid `[H, W, C]` after so many steps."""
    for states in netlist.steps(grid[None], steps):
        grid = states[0]
    return grid


def check_grid(expected: Bits, found: Bits, what: str) -> None:
    """Raises ExportError where two grids differ."""
    if expected.shape != found.shape or not np.array_equal(expected, found):
        raise ExportError(
            f"{what} differs from the circuit on a grid of {'x'.join(map(str, expected.shape[:2]))} cells."
        )
