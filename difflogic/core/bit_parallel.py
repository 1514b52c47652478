"""Evaluate netlists on 64 samples per word, one level of gates after another."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from difflogic.core import gates
from difflogic.core.bits import Words

Index = npt.NDArray[np.int32]

# The algebraic normal form is the real form modulo 2: OR, a + b - ab, becomes a ^ b ^ (a & b). One formula evaluates
# all sixteen gates, so that a level of different gates takes only a few NumPy calls.
MASKS = np.where(gates.TABLE.T % 2 == 1, np.uint64(2**64 - 1), np.uint64(0))
"""Masks c, ca, cb, cab of each gate `c ^ (ca & a) ^ (cb & b) ^ (cab & a & b)`, all ones or zeros, uint64 `[4, 16]`."""


def evaluated(masks: Words, a: Words, b: Words) -> Words:
    """Return outputs `[n, N]` of n gates for inputs `a` and `b`; `masks [4, n, 1]` are the gates' columns of MASKS."""
    constant, of_a, of_b, of_both = masks
    values: Words = constant ^ (of_a & a) ^ (of_b & b) ^ (of_both & a & b)
    return values


class _Level(NamedTuple):
    """Gates that depend only on inputs and earlier levels, with the indices of their outputs and inputs."""

    bits: Index
    a: Index
    b: Index
    masks: Words


@dataclass(frozen=True, eq=False)
class BitProgram:
    """Topologically sorted gates: ids uint8 `[n]`, and `wires` int32 `[n, 2]`, indices of inputs, then of gates."""

    inputs: int
    gates: npt.NDArray[np.uint8]
    wires: Index

    @cached_property
    def depths(self) -> Index:
        """Number of gates on the longest path from an input to each gate, int32 `[n]`."""
        depths = [0] * self.inputs
        for a, b in self.wires.tolist():
            depths.append(1 + max(depths[a], depths[b]))
        return np.array(depths[self.inputs :], dtype=np.int32)

    @cached_property
    def _levels(self) -> list[_Level]:
        # Gates of equal depth cannot depend on each other, so they are evaluated together.
        order = np.argsort(self.depths, kind="stable")
        starts = np.flatnonzero(np.diff(self.depths[order], prepend=-1))
        levels = []
        for members in np.split(order, starts[1:]) if len(order) else []:
            a, b = self.wires[members].T
            bits, types = (self.inputs + members).astype(np.int32), self.gates[members]
            levels.append(_Level(bits, a, b, MASKS[:, types, None]))
        return levels

    def all_bits(self, words: Words) -> Words:
        """Return the values of inputs, uint64 `words [inputs, N]`, followed by all gates' values, `[inputs + n, N]`."""
        values = np.empty((self.inputs + len(self.gates), words.shape[1]), dtype=np.uint64)
        values[: self.inputs] = words
        for level in self._levels:
            a, b = values[level.a], values[level.b]
            values[level.bits] = evaluated(level.masks, a, b)
        return values

    def possible_bits(self, zero: Sequence[int], one: Sequence[int]) -> tuple[list[int], list[int]]:
        """Return whether each input and gate can be 0 and whether it can be 1, as two lists of `inputs + n` integers.

        `zero` and `one` state the same for the inputs. Bit i of an integer is sample i; an input that can be both
        0 and 1 is unknown. Gates are evaluated in Kleene's three-valued logic: a bit that cannot be 1 is 0 for all
        values of the unknown inputs. The converse is false: `x XOR x` with an unknown x counts as unknown.
        """
        # A Python integer has one bit per sample, so that the AND of two bits over all samples is one operation.
        can = [list(zero), list(one)]
        for gate, (a, b) in zip(self.gates.tolist(), self.wires.tolist(), strict=True):
            possible = [0, 0]
            for row in range(4):  # a row of the truth table is possible if both of its input values are
                possible[gate >> (3 - row) & 1] |= can[row >> 1][a] & can[row & 1][b]
            for values, value in zip(can, possible, strict=True):
                values.append(value)
        return can[0], can[1]
