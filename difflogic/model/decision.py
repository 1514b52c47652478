"""The decision of a policy as gates: the output bits of each action are counted, and the counts compared.

Bits are counted as in a multiplier: adders take bits of one weight to one of that weight and some of twice as much,
until each weight has one bit. Most adders take a bit and two pairs, by eight gates, where two full adders have ten: a
pair is a bit and the XOR of both, which each adder needs anyway. Five bits take eleven gates:

    weight 1: a b c d e     double(a, pair(b, c), pair(d, e)) = bit 0, a pair of weight 2
    weight 2: the pair      its XOR is bit 1, its AND is bit 2

The actions are compared in order, each with the best so far: only a larger count takes its place, so that of equal ones
the first is chosen.
Source: Wallace, *A suggestion for a fast multiplier* (1964); Demenkov, Kojevnikov, Kulikov and Yaroslavtsev, *New upper
bounds on the Boolean circuit complexity of symmetric functions* (2010).
"""

from collections.abc import Sequence
from itertools import zip_longest
from math import isqrt

import numpy as np
import numpy.typing as npt

from difflogic.core.gates import GATE_COUNT
from difflogic.errors import CircuitError

Layer = tuple[npt.ArrayLike, npt.ArrayLike]
"""Wires int `[k, n]` into the layer before, and gate ids `[n]` of k = 2, or the outputs of look-up tables `[n, 2**k]`.

The first wire is the highest bit of an entry's number.
"""
Gates = tuple[list[int], list[tuple[int, int]], list[int]]
"""Gate ids, wires and outputs, as a netlist has them."""
Pair = tuple[int, int]
"""Two bits: one of them, and the XOR of both."""

_FALSE, _AND, _A_AND_NOT_B, _NOT_A_AND_B, _XOR, _OR = 0, 1, 2, 4, 6, 7


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
        ways = gates.shape[1].bit_length() - 1 if gates.ndim == 2 else 2
        fits = wires.shape == (ways, len(gates)) and gates.shape[1:] in ((), (1 << ways,))
        if not fits or not all(a.dtype.kind in "iu" for a in (wires, gates)):
            raise CircuitError(
                f"Layer {number} needs wires [2, n] and gates [n], or [k, n] and [n, 2**k], of whole numbers, got "
                f"{list(wires.shape)} and {list(gates.shape)}."
            )
        if wires.size and not 0 <= int(wires.min()) <= int(wires.max()) < len(before):
            raise CircuitError(f"The wires of layer {number} lead to bits 0 to {len(before) - 1} of the layer before.")
        if gates.size and not 0 <= int(gates.min()) <= int(gates.max()) < GATE_COUNT:
            raise CircuitError(f"The gates of layer {number} need ids from 0 to {GATE_COUNT - 1}.")
        rows = zip(gates.tolist(), wires.T.tolist(), strict=True)
        if gates.ndim == 2:
            return [self.table(table, [before[wire] for wire in places], {}) for table, places in rows]
        return [self.gate(gate, before[a], before[b]) for gate, (a, b) in rows]

    def table(self, entries: Sequence[int], bits: list[int], known: dict[tuple[int, ...], int]) -> int:
        """Return the bit of a look-up table by Shannon's expansion; `known` are the bits of its parts so far."""
        key, half = tuple(entries), len(entries) // 2
        if key not in known:
            low, high, rest = key[:half], key[half:], bits[1:]
            if half <= 2:
                rows = key if half == 2 else (*low, *low, *high, *high)  # of one input, which is read twice
                known[key] = self.gate(sum(bit << 3 - row for row, bit in enumerate(rows)), bits[0], bits[-1])
            elif low == high:
                known[key] = self.table(low, rest, known)
            elif all(one != other for one, other in zip(low, high, strict=True)):
                known[key] = self.gate(_XOR, bits[0], self.table(low, rest, known))
            else:
                zero, one = (self.table(part, rest, known) for part in (low, high))
                known[key] = self.gate(_XOR, zero, self.gate(_AND, bits[0], self.gate(_XOR, zero, one)))
        return known[key]

    def count(self, bits: list[int]) -> list[int]:
        """Return the number of ones as bits, the lowest first."""
        number, singles, pairs = list[int](), list(bits), list[Pair]()
        while len(number) < len(bits).bit_length():  # higher carries are always 0
            carries, carried_pairs = list[int](), list[Pair]()
            while len(singles) + 2 * len(pairs) > 1:
                # Sums go to the end, and some pairs begin sums of their own, so that the adders form no long chain.
                if len(singles) < max(1, isqrt(len(pairs))):
                    a, either = pairs.pop(0)
                    singles.append(either)
                    carries.append(self.gate(_A_AND_NOT_B, a, either))
                    continue
                bit, some = singles.pop(0), [*pairs[:2]]
                del pairs[:2]
                while len(some) < 2 and len(singles) > 1:
                    some.append((singles[0], self.gate(_XOR, *singles[:2])))
                    del singles[:2]
                if len(some) == 2:
                    total, pair = self.double(bit, *some)
                    carried_pairs.append(pair)
                elif some:
                    total, carry = self.add(bit, *some)
                    carries.append(carry)
                else:
                    total, carry = self.gate(_XOR, bit, singles[0]), self.gate(_AND, bit, singles.pop(0))
                    carries.append(carry)
                singles.append(total)
            number += singles
            singles, pairs = carries, carried_pairs
        return number

    def add(self, bit: int, pair: Pair) -> tuple[int, int]:
        """Return the sum and the carry of a bit and a pair (full adder)."""
        total = self.gate(_XOR, bit, pair[1])
        return total, self.gate(_XOR, total, self.gate(_OR, pair[1], self.gate(_XOR, pair[0], bit)))

    def double(self, bit: int, one: Pair, other: Pair) -> tuple[int, Pair]:
        """Return the sum of a bit and two pairs, and the pair of their carries (modified double full adder)."""
        # The carry of the first pair is `half`, inverted unless its bits differ or `one` and `bit` do: `inverts`. That
        # of the second pair is `half` if its bits differ, else either of them: so both carries differ if `inverts`
        # does from `half` against the second pair.
        half = self.gate(_XOR, bit, one[1])
        inverts = self.gate(_OR, one[1], self.gate(_XOR, one[0], bit))
        against = self.gate(_A_AND_NOT_B, self.gate(_XOR, half, other[0]), other[1])
        return self.gate(_XOR, half, other[1]), (self.gate(_XOR, half, inverts), self.gate(_XOR, inverts, against))

    def first_largest(self, numbers: list[list[int]]) -> list[int]:
        """The place of the largest number, of equal ones the first, as bits."""
        best, place = numbers[0], list[int]()
        for index, number in enumerate(numbers[1:], 1):
            differs = [self.gate(_XOR, a, b) for a, b in zip(number[1:], best[1:], strict=True)]
            larger = self.larger(number, best, differs)
            # Of the place so far and `index`, bit by bit: before the first choice it is 0, which no gate holds.
            place = [
                self.chosen(larger, index >> bit & 1, old)
                for bit, old in zip_longest(range((len(numbers) - 1).bit_length()), place)
            ]
            if index < len(numbers) - 1:
                best = [
                    self.gate(_XOR, old, self.gate(_AND, larger, change))
                    for old, change in zip(best, [self.gate(_XOR, number[0], best[0]), *differs], strict=True)
                ]
        return place

    def larger(self, number: list[int], other: list[int], differs: list[int]) -> int:
        """Return whether a number is larger than another one; `differs` are the XORs of all bits but the lowest."""
        # From the lowest bit: the bit of the first number decides if the bits differ, else what was found below does.
        result = self.gate(_A_AND_NOT_B, number[0], other[0])
        for bit, either in zip(number[1:], differs, strict=True):
            result = self.gate(_XOR, result, self.gate(_AND, either, self.gate(_XOR, bit, result)))
        return result

    def chosen(self, condition: int, yes: int, no: int | None) -> int:
        """A constant where the condition holds, else the bit, or 0 where there is none."""
        if no is None:
            return self.gate(_AND, condition, condition) if yes else self.gate(_FALSE, condition, condition)
        return self.gate(_OR, condition, no) if yes else self.gate(_NOT_A_AND_B, condition, no)
