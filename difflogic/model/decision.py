"""Build a policy's choice of an action from gates: count the output bits of each action, and compare the counts.

Bits are counted as in a multiplier: adders reduce the bits of one weight to one bit, with carries of twice the weight.
Most adders add a bit and two pairs with eight gates, while two full adders take ten. A pair stores two bits as the
first bit and the XOR of the two bits, which an adder computes in any case. Five bits take eleven gates:

    weight 1: a b c d e     double(a, pair(b, c), pair(d, e)) = bit 0, a pair of weight 2
    weight 2: the pair      its XOR is bit 1, its AND is bit 2

Each action's count is compared with the best count so far, which only a larger count replaces. So the first of several
equal counts is chosen. Source: Wallace, *A suggestion for a fast multiplier* (1964); Demenkov, Kojevnikov, Kulikov and
Yaroslavtsev, *New upper bounds on the Boolean circuit complexity of symmetric functions* (2010).
"""

from collections.abc import Sequence
from itertools import zip_longest
from math import isqrt

import numpy as np
import numpy.typing as npt

from difflogic.core.gates import GATE_COUNT
from difflogic.errors import CircuitError

Layer = tuple[npt.ArrayLike, npt.ArrayLike]
"""Wires to the previous layer, int `[k, n]`, and n truth tables of k inputs, `[n, 2**k]` (or gate ids `[n]` for k = 2).

The first wire is the most significant bit of the index into a truth table.
"""
Gates = tuple[list[int], list[tuple[int, int]], list[int]]
"""Gate ids, wires and outputs of a circuit, numbered as in a netlist."""
Pair = tuple[int, int]
"""Two bits a and b, stored as (a, a XOR b)."""

_FALSE, _AND, _A_AND_NOT_B, _NOT_A_AND_B, _XOR, _OR = 0, 1, 2, 4, 6, 7


def decision(inputs: int, layers: Sequence[Layer], actions: int, memory: int = 0) -> Gates:
    """Return gates that compute the chosen action's number, in binary with the lowest bit first, from `inputs` bits.

    The last layer consists of equal groups of bits, one per action, then `memory` bits, which are output after those of
    the action. If `actions` is 0, all its bits are outputs. Raise CircuitError if the groups cannot be equal.
    """
    circuit = _Circuit(inputs)
    bits = list(range(inputs))
    for number, (wires, gates) in enumerate(layers):
        bits = circuit.layer(number, bits, np.asarray(wires), np.asarray(gates))
    if not actions:
        return circuit.gates, circuit.wires, bits
    bits, memory_bits = bits[: len(bits) - memory], bits[len(bits) - memory :]
    if not bits or len(bits) % actions:
        raise CircuitError(f"{len(bits)} output bits cannot be divided equally among {actions} actions.")
    size = len(bits) // actions
    counts = [circuit.count(bits[size * action : size * (action + 1)]) for action in range(actions)]
    return circuit.gates, circuit.wires, circuit.first_largest(counts) + memory_bits


class _Circuit:
    """Builder of gates; each method appends gates and returns the numbers of the result's bits."""

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
        """Append layer `number`, which reads the bits `before`; return its bits. Raise CircuitError if invalid."""
        ways = gates.shape[1].bit_length() - 1 if gates.ndim == 2 else 2
        fits = wires.shape == (ways, len(gates)) and gates.shape[1:] in ((), (1 << ways,))
        if not fits or not all(a.dtype.kind in "iu" for a in (wires, gates)):
            raise CircuitError(
                f"Layer {number} needs integer wires [2, n] and gates [n], or [k, n] and [n, 2**k], got "
                f"{list(wires.shape)} and {list(gates.shape)}."
            )
        if wires.size and not 0 <= int(wires.min()) <= int(wires.max()) < len(before):
            raise CircuitError(f"The wires of layer {number} must be 0 to {len(before) - 1}, indices of its inputs.")
        if gates.size and not 0 <= int(gates.min()) <= int(gates.max()) < GATE_COUNT:
            raise CircuitError(f"The gates of layer {number} must have ids from 0 to {GATE_COUNT - 1}.")
        rows = zip(gates.tolist(), wires.T.tolist(), strict=True)
        if gates.ndim == 2:
            return [self.table(table, [before[wire] for wire in places], {}) for table, places in rows]
        return [self.gate(gate, before[a], before[b]) for gate, (a, b) in rows]

    def table(self, entries: Sequence[int], bits: list[int], cache: dict[tuple[int, ...], int]) -> int:
        """Append the function of `bits` with the truth table `entries`; `cache` maps cofactors to their bits."""
        key, half = tuple(entries), len(entries) // 2
        if key not in cache:
            low, high, rest = key[:half], key[half:], bits[1:]
            if half <= 2:
                rows = key if half == 2 else (*low, *low, *high, *high)  # a table of one input, which is read twice
                cache[key] = self.gate(sum(bit << 3 - row for row, bit in enumerate(rows)), bits[0], bits[-1])
            elif low == high:
                cache[key] = self.table(low, rest, cache)
            elif all(x != y for x, y in zip(low, high, strict=True)):
                cache[key] = self.gate(_XOR, bits[0], self.table(low, rest, cache))
            else:
                if_0, if_1 = (self.table(cofactor, rest, cache) for cofactor in (low, high))
                cache[key] = self.gate(_XOR, if_0, self.gate(_AND, bits[0], self.gate(_XOR, if_0, if_1)))
        return cache[key]

    def count(self, bits: list[int]) -> list[int]:
        """Return the number of ones in `bits`, in binary with the lowest bit first."""
        number, singles, pairs = list[int](), list(bits), list[Pair]()
        while len(number) < len(bits).bit_length():  # higher carries are always 0
            carries, carried_pairs = list[int](), list[Pair]()
            while len(singles) + 2 * len(pairs) > 1:
                # Append sums to the end of the list, and split some pairs, so that adders form no long chain.
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
        """Return the sum bit and the carry of a bit and a pair (full adder)."""
        total = self.gate(_XOR, bit, pair[1])
        return total, self.gate(_XOR, total, self.gate(_OR, pair[1], self.gate(_XOR, pair[0], bit)))

    def double(self, bit: int, first: Pair, other: Pair) -> tuple[int, Pair]:
        """Return the sum bit of a bit and two pairs, and the pair of the two carries (modified double full adder)."""
        # The carry of `bit` and the first pair is `half` if the three bits are equal, NOT `half` otherwise (`inverts`).
        # The carry of `half` and the second pair is `half` if the bits of the pair differ, otherwise its first bit:
        # `against` is 1 if this carry is not `half`. So the two carries differ if `inverts` and `against` differ.
        half = self.gate(_XOR, bit, first[1])
        inverts = self.gate(_OR, first[1], self.gate(_XOR, first[0], bit))
        against = self.gate(_A_AND_NOT_B, self.gate(_XOR, half, other[0]), other[1])
        return self.gate(_XOR, half, other[1]), (self.gate(_XOR, half, inverts), self.gate(_XOR, inverts, against))

    def first_largest(self, numbers: list[list[int]]) -> list[int]:
        """Return the index of the first largest number, in binary with the lowest bit first."""
        best, place = numbers[0], list[int]()
        for index, number in enumerate(numbers[1:], 1):
            differs = [self.gate(_XOR, a, b) for a, b in zip(number[1:], best[1:], strict=True)]
            larger = self.larger(number, best, differs)
            # Select the previous index or the new one, bit by bit; bits of the first index, 0, need no gates (None).
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
        """Return a bit that is 1 if `number > other`; `differs` are the XORs of their bits except the lowest."""
        # From the lowest bit up: if two bits differ, the bit of `number` decides, otherwise the lower bits do.
        result = self.gate(_A_AND_NOT_B, number[0], other[0])
        for bit, either in zip(number[1:], differs, strict=True):
            result = self.gate(_XOR, result, self.gate(_AND, either, self.gate(_XOR, bit, result)))
        return result

    def chosen(self, condition: int, yes: int, no: int | None) -> int:
        """Return a bit that is the constant `yes` if `condition` is 1, otherwise the bit `no`, or 0 if `no` is None."""
        if no is None:
            return self.gate(_AND, condition, condition) if yes else self.gate(_FALSE, condition, condition)
        return self.gate(_OR, condition, no) if yes else self.gate(_NOT_A_AND_B, condition, no)
