"""Circuits to export: learned, made by hand, printed by the paper, degenerate, random."""

from dataclasses import replace

import numpy as np

from difflogic.config import presets
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.deployment import Scenario
from tests.learned import learned
from tests.random_netlists import random_netlist


class Builder:
    """Gates one after the other; each call returns the bit that it made."""

    def __init__(self, channels: int) -> None:
        self.inputs = 9 * channels
        self.gates: list[int] = []
        self.wires: list[tuple[int, int]] = []

    def __call__(self, gate: int, a: int, b: int) -> int:
        self.gates.append(gate)
        self.wires.append((a, b))
        return self.inputs + len(self.gates) - 1


AND, XOR, OR, NOT, A_AND_NOT_B = 1, 6, 7, 12, 2


def life(periodic: bool = True) -> CellNetlist:
    """Conway's rule in 28 gates: the eight neighbours added up."""
    gate = Builder(1)

    def half(a: int, b: int) -> tuple[int, int]:
        return gate(XOR, a, b), gate(AND, a, b)

    def full(a: int, b: int, c: int) -> tuple[int, int]:
        first, carry = half(a, b)
        total, other = half(first, c)
        return total, gate(OR, carry, other)

    (a, x), (b, y), (c, z) = full(0, 1, 2), full(3, 5, 6), half(7, 8)
    ones, w = full(a, b, c)
    twos, u = full(x, y, z)
    twos, v = half(twos, w)
    alive = gate(A_AND_NOT_B, gate(AND, twos, gate(OR, ones, 4)), gate(OR, u, v))
    return CellNetlist.build(1, periodic, gate.gates, gate.wires, [alive])


def published() -> CellNetlist:
    """The checkerboard that the paper prints, eight channels of which one is visible."""
    gate = Builder(8)

    def cell(channel: int, patch: int) -> int:
        return 9 * channel + patch

    kept = gate(OR, gate(OR, cell(2, 0), cell(2, 8)), cell(3, 6))
    board = gate(NOT, gate(A_AND_NOT_B, kept, cell(2, 6)), 0)
    first = gate(OR, cell(1, 0), cell(1, 8))
    outputs = [board, first, cell(0, 6), cell(0, 0), cell(6, 8), cell(0, 0), cell(4, 6), cell(7, 6)]
    return CellNetlist.build(8, False, gate.gates, gate.wires, outputs, visible=1)


def published_small() -> CellNetlist:
    """Return the same with the three channels that the image needs, under their old names."""
    gate = Builder(3)
    kept = gate(OR, gate(OR, 9 + 0, 9 + 8), 18 + 6)
    board = gate(NOT, gate(A_AND_NOT_B, kept, 9 + 6), 0)
    return CellNetlist.build(3, False, gate.gates, gate.wires, [board, 6, 0], visible=1, origin=[0, 2, 3])


def tangled(count: int, channels: int = 2, width: int = 1) -> CellNetlist:
    """A random circuit with few idle gates, some 2 * count / width deep: each reads one of the `width` before it."""
    rng = np.random.default_rng(1)
    ends = 9 * channels + np.arange(count)
    near = np.maximum(0, ends - 1 - rng.integers(0, width, count))
    wires = np.stack([near, rng.integers(np.maximum(0, ends - 60 * width), ends)], axis=1)
    gates = rng.choice([1, 2, 4, 6, 7, 8, 9, 11, 13, 14], count, p=[0.05] * 3 + [0.3] + [0.05] * 2 + [0.3] + [0.05] * 3)
    return CellNetlist.build(channels, True, gates, wires, ends[-channels:])


CASES = {
    "learned checkerboard": CellNetlist.from_circuit(learned(presets.checkerboard()), visible=1),
    "learned life": CellNetlist.from_circuit(learned(presets.game_of_life()), scenario=Scenario("seed", 9, 20, 6, 0.6)),
    "life": life(),
    "life on a plane": life(periodic=False),
    "published": published(),
    "published, small": replace(
        published_small(), scenario=Scenario("picture", 3, 5, 4, picture=("..1..", ".123.", "4...5"))
    ),
    "no gate": CellNetlist.build(2, False, [], [], [4, 9]),
    "constants": CellNetlist.build(2, True, [0, 15, 6], [[0, 1], [2, 3], [5, 5]], [18, 19]),
    "one constant": CellNetlist.build(1, False, [15], [[0, 0]], [9]),
    "tangled": tangled(60),
    "eight channels": replace(random_netlist(np.random.default_rng(1), 30, 8, reach=60), periodic=True),
}

KEYWORDS = ("module", "entity", "int", "import", "begin", "class", "life", "fn", "next", "3 ünïcode—näme!", "_", "a__b")
"""Names that are words of some language, or of none."""
