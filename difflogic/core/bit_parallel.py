"""Gates evaluated on 64 samples per word, level by level."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from difflogic.core import gates
from difflogic.core.bits import Words

Index = npt.NDArray[np.int32]

_ANF = np.array([[1, 0, 0, 0], [1, 0, 1, 0], [1, 1, 0, 0], [1, 1, 1, 1]]) @ gates.TRUTH.T % 2
_MASKS = np.where(_ANF == 1, np.uint64(2**64 - 1), np.uint64(0))
"""uint64 `[4, 16]`: a gate is `c ^ (ca & a) ^ (cb & b) ^ (cab & a & b)` with masks of all ones or none."""


class _Level(NamedTuple):
    """Gates that read nothing of their own level or a later one."""

    bits: Index
    a: Index
    b: Index
    masks: Words


@dataclass(frozen=True, eq=False)
class BitProgram:
    """`gates` uint8 `[n]`, ids; `wires` int32 `[n, 2]` index the bits: the inputs, then the gates in order."""

    inputs: int
    gates: npt.NDArray[np.uint8]
    wires: Index

    @cached_property
    def depths(self) -> Index:
        """int32 `[n]`: the longest way from an input to each gate, in gates."""
        depths = [0] * self.inputs
        for a, b in self.wires.tolist():
            depths.append(1 + max(depths[a], depths[b]))
        return np.array(depths[self.inputs :], dtype=np.int32)

    @cached_property
    def _levels(self) -> list[_Level]:
        order = np.argsort(self.depths, kind="stable")
        starts = np.flatnonzero(np.diff(self.depths[order], prepend=-1))
        levels = []
        for members in np.split(order, starts[1:]) if len(order) else []:
            a, b = self.wires[members].T
            levels.append(_Level((self.inputs + members).astype(np.int32), a, b, _MASKS[:, self.gates[members], None]))
        return levels

    def all_bits(self, words: Words) -> Words:
        """Every bit, uint64 `[inputs + n, N]`, for inputs uint64 `[inputs, N]`."""
        values = np.empty((self.inputs + len(self.gates), words.shape[1]), dtype=np.uint64)
        values[: self.inputs] = words
        for level in self._levels:
            a, b = values[level.a], values[level.b]
            constant, of_a, of_b, of_both = level.masks
            values[level.bits] = constant ^ (of_a & a) ^ (of_b & b) ^ (of_both & a & b)
        return values
