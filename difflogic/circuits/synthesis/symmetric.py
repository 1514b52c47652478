"""Resynthesis of functions of few inputs from their truth tables, with counters for symmetric inputs.

An output that does not change when some inputs are exchanged depends only on the number of ones among these. Full
adders, two of which take 8 to 10 gates, count the ones in each such group. Shannon expansion does the rest; impossible
counts are don't cares.
"""

from collections.abc import Sequence
from itertools import accumulate, product
from typing import NamedTuple

from difflogic.circuits.synthesis.truth_tables import cofactor, output_tables
from difflogic.circuits.synthesis.xag import FALSE, XAG, Builder, input_literal, rebuilt

LEAST = 3
"""Minimum number of inputs in a group for which an adder is worthwhile."""

Entry = int | None
"""Entry in a truth table: 0, 1, or None for a don't care."""


def rebuilt_symmetric(graph: XAG) -> XAG:
    """Return an equivalent graph built from truth tables, which is often larger but sometimes far smaller."""
    builder = Builder(graph.inputs)
    return rebuilt(builder.finish(_output(builder, table, graph.inputs) for table in output_tables(graph)))


class _Group(NamedTuple):
    """Literals that represent a group of inputs: a single input, or the binary count of ones among symmetric inputs."""

    bits: list[int]
    states: list[tuple[int, int]]
    """Possible values of `bits` as integers, each with the index of a sample in which they have this value."""


def _output(builder: Builder, table: int, inputs: int) -> int:
    # x3 XOR (x0 AND x1 AND x2) has the groups {3} and {0, 1, 2}, small ones first. Of the second only its count
    # matters, 0 to 3 in the bits c1 c0. So the function has a table of eight entries, `c1 c0 x3`, each the entry of the
    # old table for one sample with this count: entry 110, a count of 3, is that for x0 = x1 = x2 = 1 and x3 = 0, a 1.
    groups = list[_Group]()
    for members in _exchangeable(table, inputs):
        literals, ones = [input_literal(member) for member in members], [1 << member for member in members]
        if len(members) >= LEAST:
            groups.append(_Group(counted(builder, literals), list(enumerate(accumulate(ones, initial=0)))))
        else:
            groups += [_Group([x], [(0, 0), (1, one)]) for x, one in zip(literals, ones, strict=True)]
    bits = [bit for group in groups for bit in group.bits]
    entries: list[Entry] = [None] * (1 << len(bits))
    for states in product(*(group.states for group in groups)):
        index = shift = sample = 0
        for group, (value, part) in zip(groups, states, strict=True):
            index |= value << shift
            shift += len(group.bits)
            sample |= part
        entries[index] = table >> sample & 1
    return decided(builder, tuple(entries), bits, {})


def _exchangeable(table: int, inputs: int) -> list[list[int]]:
    """Return the inputs on which a table depends, in groups of symmetric inputs, small groups first."""
    groups: list[list[int]] = []
    for index in range(inputs):
        # Two inputs are symmetric if the cofactors for 01 and 10 are equal.
        if cofactor(table, index, 0, inputs) == cofactor(table, index, 1, inputs):
            continue
        for group in groups:
            low = cofactor(cofactor(table, index, 0, inputs), group[0], 1, inputs)
            if low == cofactor(cofactor(table, index, 1, inputs), group[0], 0, inputs):
                group.append(index)
                break
        else:
            groups.append([index])
    return sorted(groups, key=len)


def counted(builder: Builder, column: list[int]) -> list[int]:
    """Build adders, and return the binary count of true literals in `column`, lowest bit first."""
    # Bits of equal weight form a column. A full adder reads two bits x and y of a column as the pair x and x XOR y, and
    # a third bit z: sum = x XOR y XOR z, carry = ((x XOR y) OR (x XOR z)) XOR sum. Two chained adders produce two
    # carries for the next column. A pair of carries takes one gate less than two separate ones: eight gates for two
    # pairs and a bit. A count of seven inputs, three bits, takes 19 gates.
    # Source: Kojevnikov, Kulikov and Yaroslavtsev, *Finding efficient circuits using SAT-solvers* (2009).
    bits, pairs = [], list[tuple[int, int]]()
    while column or pairs:
        carries, carried = [], []
        while (count := 2 * len(pairs) + len(column)) > 1:
            z, *column = column if column and count > 2 else [FALSE, *column]
            x, differ = pairs.pop() if pairs else _pair(builder, column)
            low = builder.xor(differ, z)
            either = builder.or_(differ, builder.xor(x, z))
            carry = builder.xor(either, low)
            if pairs or len(column) > 1:
                x, differ = pairs.pop() if pairs else _pair(builder, column)
                carried.append((carry, builder.xor(either, builder.and_(builder.xor(x, low), differ ^ 1))))
                low = builder.xor(low, differ)
            else:
                carries.append(carry)
            column.append(low)
        bits.append(column[0])
        column, pairs = carries, carried
    return bits


def _pair(builder: Builder, column: list[int]) -> tuple[int, int]:
    """Remove two bits x and y from a column, and return the pair x and x XOR y."""
    x, y, *column[:] = column
    return x, builder.xor(x, y)


def decided(
    builder: Builder, entries: tuple[Entry, ...], bits: Sequence[int], cache: dict[tuple[Entry, ...], int]
) -> int:
    """Build the truth table `entries[s]`, where bit i of s is `bits[i]`, by Shannon expansion; return its literal."""
    if 0 not in entries or 1 not in entries:
        return int(0 not in entries)
    if entries in cache:
        return cache[entries]
    # Shannon expansion, f = bit ? high : low, takes three gates: low XOR (bit AND (low XOR high)). It takes no gate if
    # both halves agree apart from don't cares, and one XOR if they are opposite.
    half = len(entries) // 2
    low, high, bit = entries[:half], entries[half:], bits[half.bit_length() - 1]
    if (both := _joined(low, high)) is not None:
        result = decided(builder, both, bits, cache)
    elif (both := _joined(low, tuple(None if entry is None else 1 - entry for entry in high))) is not None:
        result = builder.xor(bit, decided(builder, both, bits, cache))
    else:
        zero, one = decided(builder, low, bits, cache), decided(builder, high, bits, cache)
        result = builder.xor(zero, builder.and_(bit, builder.xor(zero, one)))
    cache[entries] = result
    return result


def _joined(one: tuple[Entry, ...], other: tuple[Entry, ...]) -> tuple[Entry, ...] | None:
    """Return a table that agrees with both tables except at don't cares; None if two entries differ."""
    pairs = list(zip(one, other, strict=True))
    if any(a is not None and b is not None and a != b for a, b in pairs):
        return None
    return tuple(b if a is None else a for a, b in pairs)
