"""Test vectors: every combination of the inputs that a circuit reads, or random ones where those are too many."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from difflogic import prng
from difflogic.circuits.export.text import counted
from difflogic.netlist import Bits, Netlist, pack_bits, unpack_bits
from difflogic.straight_line import read_inputs

_SEED = 1


@dataclass(frozen=True, eq=False)
class Vectors:
    """`inputs` uint8 `[9*C, samples]`."""

    inputs: Bits
    exhaustive: bool
    """They hold every combination of the inputs that the circuit reads; the others are random."""

    @property
    def count(self) -> int:
        return len(self.inputs[0])

    def outputs(self, netlist: Netlist) -> Bits:
        """The right answers, uint8 `[C, samples]`."""
        return unpack_bits(netlist.evaluate(pack_bits(self.inputs)), self.count)

    def described(self) -> str:
        """`all 512 neighbourhoods` or `1000000 random neighbourhoods`."""
        if not self.exhaustive:
            return counted(self.count, "random neighbourhood")
        return f"all {self.count} neighbourhoods" if self.count > 1 else "the only neighbourhood"


def random_bits(key: prng.Key, shape: tuple[int, ...]) -> Bits:
    """Fair bits, uint8: the top bits of so many words."""
    return (prng.random_bits(key, math.prod(shape)) >> 31).astype(np.uint8).reshape(shape)


def draw_vectors(netlist: Netlist, most: int) -> Vectors:
    """All combinations where they are at most `most`, else so many random vectors; the same each time."""
    read = read_inputs(netlist)
    exhaustive = 1 << len(read) <= most
    samples = 1 << len(read) if exhaustive else most
    words = prng.random_bits(prng.key_from_seed(_SEED), netlist.inputs * -(-samples // 32))
    packed = words.astype("<u4").view(np.uint8).reshape(netlist.inputs, -1)
    inputs = np.unpackbits(packed, axis=1, count=samples, bitorder="little")
    if exhaustive:
        inputs[read] = np.arange(samples) >> np.arange(len(read))[:, None] & 1
    return Vectors(inputs, exhaustive)
