"""The decision of a policy as gates: the output bits of each action are counted, and the counts compared.

Bits are counted as in a multiplier: a full adder takes three bits of one weight to one of that weight and one of twice
as much, until each weight has one bit. Five bits take three full adders and a half adder:

    weight 1: a b c d e     full(a, b, c) = s, u;  full(s, d, e) = bit 0, v
    weight 2: u v           half(u, v) = bit 1, bit 2

The actions are compared in order, each with the best so far: only a larger count takes its place, so that of equal ones
the first is chosen.
Source: Wallace, *A suggestion for a fast multiplier* (1964).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

import numpy as np
import numpy.typing as npt

from difflogic.core.gates import GATE_COUNT
from difflogic.errors import CircuitError

Layer = tuple[npt.ArrayLike, npt.ArrayLike]
"""Wires int `[2, n]` into the layer before, as a `Circuit` has them, and gate ids `[n]`."""
Gates = tuple[list[int], list[tuple[int, int]], list[int]]
"""Gate ids, wires and outputs, as a netlist has them."""

_FALSE, _AND, _A_AND_NOT_B, _NOT_A_AND_B, _XOR, _OR, _XNOR = 0, 1, 2, 4, 6, 7, 9


def decision(inputs: int, layers: Sequence[Layer], actions: int, memory: int = 0) -> Gates:
    """All gates from `inputs` bits to the bits of the action's number; of no action, to the last layer's own.

    `memory`: so many bits of the last layer stand behind the groups, and are outputs behind the action's. Raises
    CircuitError.
    """
    circuit = _Circuit(inputs)
    bits = list(range(inputs))
    for number, (wires, gates) in enumerate(layers):
        bits = circuit.layer(number, bits, np.asarray(wires), np.asarray(gates))
    if not actions:
        return circuit.gates, circuit.wires, bits
    bits, kept = bits[: len(bits) - memory], bits[len(bits) - memory :]
    if not bits or len(bits) % actions:
        raise CircuitError(f"{len(bits)} output bits cannot be shared equally by {actions} actions.")
    size = len(bits) // actions
    counts = [circuit.count(bits[size * action : size * (action + 1)]) for action in range(actions)]
    return circuit.gates, circuit.wires, circuit.first_largest(counts) + kept


class _Circuit:
    """Gates one after the other; each call returns the bits that it made."""

    def __init__(self, inputs: int) -> None:
        self.inputs = inputs
        self.gates: list[int] = []
        self.wires: list[tuple[int, int]] = []

    def gate(self, gate: int, a: int, b: int) -> int:
        self.gates.append(gate)
        self.wires.append((a, b))
        return self.inputs + len(self.gates) - 1

    def layer(
        self, number: int, before: list[int], wires: npt.NDArray[np.generic], gates: npt.NDArray[np.generic]
    ) -> list[int]:
        """The bits of a layer of a policy."""
        if wires.shape != (2, len(gates)) or gates.ndim != 1 or not all(a.dtype.kind in "iu" for a in (wires, gates)):
            raise CircuitError(
                f"Layer {number} needs wires [2, n] and gates [n] of whole numbers, got {list(wires.shape)} and "
                f"{list(gates.shape)}."
            )
        if wires.size and not 0 <= int(wires.min()) <= int(wires.max()) < len(before):
            raise CircuitError(f"The wires of layer {number} lead to bits 0 to {len(before) - 1} of the layer before.")
        if gates.size and not 0 <= int(gates.min()) <= int(gates.max()) < GATE_COUNT:
            raise CircuitError(f"The gates of layer {number} need ids from 0 to {GATE_COUNT - 1}.")
        rows = zip(gates.tolist(), wires.T.tolist(), strict=True)
        return [self.gate(gate, before[a], before[b]) for gate, (a, b) in rows]

    def count(self, bits: list[int]) -> list[int]:
        """Return how many are 1, as a number's bits, the lowest first."""
        found, column = [], bits
        while column:
            above = []
            while len(column) > 1:
                total, carry = self.add(*column[:3])
                # What was added goes to the end, so that the adders are as few deep as can be.
                column = [*column[3:], total]
                above.append(carry)
            found += column
            column = above
        return found

    def add(self, a: int, b: int, c: int | None = None) -> tuple[int, int]:
        """The sum and the carry of two or three bits."""
        half, both = self.gate(_XOR, a, b), self.gate(_AND, a, b)
        if c is None:
            return half, both
        return self.gate(_XOR, half, c), self.gate(_OR, both, self.gate(_AND, half, c))

    def first_largest(self, numbers: list[list[int]]) -> list[int]:
        """The place of the largest number, of equal ones the first, as bits."""
        best, place = numbers[0], list[int]()
        for index, number in enumerate(numbers[1:], 1):
            larger = self.larger(number, best)
            # Of the place so far and `index`, bit by bit: before the first choice it is 0, which no gate holds.
            place = [
                self.chosen(larger, index >> bit & 1, old)
                for bit, old in zip_longest(range((len(numbers) - 1).bit_length()), place)
            ]
            if index < len(numbers) - 1:
                best = [self.multiplexed(larger, new, old) for new, old in zip(number, best, strict=True)]
        return place

    def larger(self, one: list[int], other: list[int]) -> int:
        """Return whether a number is larger than another of as many bits."""
        # From the lowest bit: where the bits differ, that of the first number decides; else what was found below.
        result = self.gate(_A_AND_NOT_B, one[0], other[0])
        for a, b in zip(one[1:], other[1:], strict=True):
            above, same = self.gate(_A_AND_NOT_B, a, b), self.gate(_XNOR, a, b)
            result = self.gate(_OR, above, self.gate(_AND, same, result))
        return result

    def multiplexed(self, condition: int, yes: int, no: int) -> int:
        """One bit or the other."""
        return self.gate(_OR, self.gate(_AND, condition, yes), self.gate(_NOT_A_AND_B, condition, no))

    def chosen(self, condition: int, yes: int, no: int | None) -> int:
        """A constant where the condition holds, else the bit, or 0 where there is none."""
        if no is None:
            return self.gate(_AND, condition, condition) if yes else self.gate(_FALSE, condition, condition)
        return self.gate(_OR, condition, no) if yes else self.gate(_NOT_A_AND_B, condition, no)
