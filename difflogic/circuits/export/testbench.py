"""The vectors of a test bench: what goes in and what must come out, in hexadecimal."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from difflogic import prng
from difflogic.circuits.export.text import Files
from difflogic.circuits.export.vectors import Vectors, draw_vectors, random_bits
from difflogic.netlist import Bits, Netlist
from difflogic.straight_line import lines

_STEPS = 16
_MOST_VECTORS, _LEAST_VECTORS = 512, 16
_WORK = 4_000_000
"""Gate evaluations that a bench may ask of a simulator: some seconds."""
_SEED = 23


def bench_files(netlist: Netlist, name: str) -> Files:
    """`NAME_tb_cell.txt` and `NAME_tb_grid.txt`: all neighbourhoods where the circuit reads at most 9 inputs."""
    affordable = _WORK // max(1, len(lines(netlist)))
    vectors = draw_vectors(netlist, most=min(max(affordable, _LEAST_VECTORS), _MOST_VECTORS))
    return {f"{name}_tb_cell.txt": cell_text(netlist, vectors), f"{name}_tb_grid.txt": _grid_text(netlist)}


def grid_sides(netlist: Netlist) -> tuple[int, int]:
    """Height and width of the grid under test: unequal, and few for a huge circuit."""
    return (5, 6) if 30 * _STEPS * len(lines(netlist)) <= _WORK else (2, 3)


def cell_text(netlist: Netlist, vectors: Vectors) -> str:
    """A line per vector: the patch, and the result."""
    return _lines(vectors.inputs, vectors.outputs(netlist))


def _grid_text(netlist: Netlist) -> str:
    """A line per step: which cells fire, and the state after it; the first step loads the start. Cell `WIDTH*y + x`."""
    shape = grid_sides(netlist)
    key, start = prng.split(prng.key_from_seed(_SEED))
    state = random_bits(start, (1, *shape, netlist.channels))
    fires, states = [np.ones(shape, dtype=np.uint8)], [state]
    for step in range(_STEPS):
        key, drawn = prng.split(key)
        fire = random_bits(drawn, shape)
        fire |= step % 2 == 0  # every cell in each other step
        state = np.where(fire[..., None], next(netlist.steps(state, 1)), state)
        fires.append(fire)
        states.append(state)
    return _lines(*(np.stack(values).reshape(len(values), -1).T for values in (fires, states)))


def _lines(*columns: Bits) -> str:
    """Rows of hexadecimal numbers, of which bit `i` is row `i` of a column `[bits, samples]`."""
    rows = zip(*map(_hexadecimal, columns), strict=True)
    return "".join(f"{' '.join(row)}\n" for row in rows)


def _hexadecimal(bits: npt.NDArray[np.uint8]) -> list[str]:
    digits = -(-len(bits) // 4)
    padded = np.zeros((8 * -(-len(bits) // 8), bits.shape[1]), dtype=np.uint8)
    padded[: len(bits)] = bits
    packed = np.packbits(padded[::-1], axis=0).T
    return [row.tobytes().hex()[-digits:] for row in packed]
