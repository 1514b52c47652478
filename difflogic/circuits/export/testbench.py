"""Test vectors: all combinations of the inputs that a circuit reads, or random ones if there are too many.

Test benches read the vectors from text files, with inputs and expected outputs in hexadecimal.
"""

import math
from dataclasses import dataclass

import numpy as np

from difflogic.circuits.export.text import Files
from difflogic.core import prng
from difflogic.core.bits import Bits, pack_bits, unpack_bits
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.netlist import Netlist
from difflogic.model.straight_line import lines, read_inputs
from difflogic.system.words import counted

_VECTORS_SEED = 1


@dataclass(frozen=True, eq=False)
class Vectors:
    """Test vectors: `inputs`, uint8 `[inputs, samples]`, and `noun`, the word for a vector in messages."""

    inputs: Bits
    exhaustive: bool
    """True if the vectors contain all combinations of the inputs that the circuit reads; other inputs are random."""
    noun: str

    @property
    def count(self) -> int:
        return len(self.inputs[0])

    def outputs(self, netlist: Netlist) -> Bits:
        """Return the expected outputs, uint8 `[outputs, samples]`."""
        return unpack_bits(netlist.evaluate(pack_bits(self.inputs)), self.count)

    def described(self) -> str:
        """Return a description such as `all 512 neighbourhoods` or `1000000 random neighbourhoods`."""
        if not self.exhaustive:
            return counted(self.count, f"random {self.noun}")
        return f"all {self.count} {self.noun}s" if self.count > 1 else f"the only {self.noun}"


def random_bits(key: prng.Key, shape: tuple[int, ...]) -> Bits:
    """Return unbiased random bits, uint8, from the top bits of random words."""
    return (prng.random_bits(key, math.prod(shape)) >> 31).astype(np.uint8).reshape(shape)


def draw_vectors(netlist: Netlist, most: int) -> Vectors:
    """Return all input combinations if there are at most `most`, otherwise `most` random vectors from a fixed seed."""
    read = read_inputs(netlist)
    exhaustive = 1 << len(read) <= most
    samples = 1 << len(read) if exhaustive else most
    # Inputs that the circuit does not read are always random, since results must not depend on them.
    words = prng.random_bits(prng.key_from_seed(_VECTORS_SEED), netlist.inputs * -(-samples // 32))
    packed = words.astype("<u4").view(np.uint8).reshape(netlist.inputs, -1)
    inputs = np.unpackbits(packed, axis=1, count=samples, bitorder="little")
    if exhaustive:
        inputs[read] = np.arange(samples) >> np.arange(len(read))[:, None] & 1
    return Vectors(inputs, exhaustive, "neighbourhood" if netlist.kind == "cell" else "pattern")


_STEPS = 16
_MOST_VECTORS, _LEAST_VECTORS = 512, 16
WORK = 4_000_000
"""Maximum number of gate evaluations in an exported bench, so that it runs within seconds."""
_GRID_SEED = 23


def bench_files(netlist: CellNetlist, name: str) -> Files:
    """Return the contents of `NAME_tb_cell.txt` (vectors) and `NAME_tb_grid.txt` (states), which the bench reads."""
    affordable = WORK // max(1, len(lines(netlist)))
    vectors = draw_vectors(netlist, most=min(max(affordable, _LEAST_VECTORS), _MOST_VECTORS))
    return {f"{name}_tb_cell.txt": cell_text(netlist, vectors), f"{name}_tb_grid.txt": _grid_text(netlist)}


def grid_sides(netlist: CellNetlist) -> tuple[int, int]:
    """Return height and width of the bench's grid: unequal, and smaller for a large circuit."""
    return (5, 6) if 30 * _STEPS * len(lines(netlist)) <= WORK else (2, 3)


def cell_text(netlist: Netlist, vectors: Vectors) -> str:
    """Return one line per vector, in hexadecimal: the inputs, then the expected outputs."""
    return hexadecimal_lines(vectors.inputs, vectors.outputs(netlist))


def _grid_text(netlist: CellNetlist) -> str:
    """Return one line per state, in hexadecimal: the cells that fired before it (bit `WIDTH*y + x`), then the state."""
    shape = grid_sides(netlist)
    key, start = prng.split(prng.key_from_seed(_GRID_SEED))
    state = random_bits(start, (1, *shape, netlist.channels))
    fires = np.ones((1 + _STEPS, *shape), dtype=np.uint8)
    for step in range(_STEPS):
        key, sample_key = prng.split(key)
        if step % 2:  # in every second step all cells fire
            fires[1 + step] = random_bits(sample_key, shape)
    states = [state, *netlist.steps(state, _STEPS, fires[1:, ..., None])]
    return hexadecimal_lines(*(values.reshape(len(values), -1).T for values in (fires, np.stack(states))))


def hexadecimal_lines(*columns: Bits) -> str:
    """Return one line per sample with a hexadecimal number for each array `[bits, samples]`, whose row i is bit i."""
    numbers = []
    for bits in columns:
        # `packbits` would pad the end of the array, the lowest bits; instead, zeros are added before the highest bit.
        packed = np.packbits(np.pad(bits, ((0, -len(bits) % 8), (0, 0)))[::-1], axis=0).T
        digits = -(-len(bits) // 4)
        numbers.append([row.tobytes().hex()[-digits:] for row in packed])
    return "".join(f"{' '.join(row)}\n" for row in zip(*numbers, strict=True))
