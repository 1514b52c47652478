"""Functions of few inputs, built anew from their truth tables: inputs that may be exchanged are counted.

Where an output does not change when two inputs are exchanged, it knows only how many of them are 1. Each such
group becomes a binary count of full adders, two of them 8 to 10 gates, and what is left is decided input by
input (Shannon), where a count that cannot be leaves the choice free.
"""

from collections.abc import Sequence
from itertools import accumulate, product
from typing import NamedTuple

from difflogic.circuits.synthesis.truth_tables import cofactor, output_tables
from difflogic.circuits.synthesis.xag import FALSE, XAG, Builder, input_literal, rebuilt

LEAST = 3
"""A smaller group is not worth an adder."""

Entry = int | None
"""0, 1, or None where it does not matter."""


def rebuilt_symmetric(graph: XAG) -> XAG:
    """Return the same functions, built from their truth tables alone: often larger, sometimes far smaller."""
    builder = Builder(graph.inputs)
    return rebuilt(builder.finish(_output(builder, table, graph.inputs) for table in output_tables(graph)))


class _Group(NamedTuple):
    """The literals that tell all about some inputs: an input itself, or the count of several in binary."""

    bits: list[int]
    states: list[tuple[int, int]]
    """What the bits may be as a number, each with a sample of the inputs that makes them so."""


def _output(builder: Builder, table: int, inputs: int) -> int:
    # x3 XOR (x0 AND x1 AND x2) has the groups {3} and {0, 1, 2}, small ones first. Of the second only its count
    # matters, 0 to 3 in the bits c1 c0. So the function is a table of eight entries, `c1 c0 x3`, each looked up in the
    # old table at one of the samples that lead there: entry 110, a count of 3, at x0 = x1 = x2 = 1 and x3 = 0, where f
    # is 1.
    groups = [group for members in _exchangeable(table, inputs) for group in _groups(builder, members)]
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
    """The inputs that the table depends on, those that may be exchanged together, small groups first."""
    groups: list[list[int]] = []
    for index in range(inputs):
        # An input that changes nothing is left out. Two may be exchanged where 01 and 10 on them lead to the same rest.
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


def _groups(builder: Builder, members: list[int]) -> list[_Group]:
    literals, ones = [input_literal(member) for member in members], [1 << member for member in members]
    if len(members) >= LEAST:
        return [_Group(counted(builder, literals), list(enumerate(accumulate(ones, initial=0))))]
    return [_Group([literal], [(0, 0), (1, one)]) for literal, one in zip(literals, ones, strict=True)]


def counted(builder: Builder, column: list[int]) -> list[int]:
    """The sum of the literals in binary, lowest bit first."""
    # As addition by hand, a column of equal weight after the other. Two bits x and y of a column are a pair, x and
    # x XOR y, which a full adder of a third bit z wants: sum = x XOR y XOR z, carry = (x XOR y OR x XOR z) XOR sum.
    # Two adders in a chain leave two carries for the next column, and they leave them as a pair for a gate less than
    # one by one: eight gates in all for two pairs and a bit. Seven inputs take 19 gates to become three bits.
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
    """Two bits of a column, taken from it."""
    x, y, *column[:] = column
    return x, builder.xor(x, y)


def decided(
    builder: Builder, entries: tuple[Entry, ...], bits: Sequence[int], known: dict[tuple[Entry, ...], int]
) -> int:
    """A literal that is `entries[s]` where bit `i` is bit `i` of `s`; the highest bit decides first."""
    # A table without a 0, don't-cares aside, is the constant 1.
    if 0 not in entries or 1 not in entries:
        return int(0 not in entries)
    if entries not in known:
        half = len(entries) // 2
        known[entries] = _by_bit(builder, entries[:half], entries[half:], bits, known)
    return known[entries]


def _by_bit(
    builder: Builder,
    low: tuple[Entry, ...],
    high: tuple[Entry, ...],
    bits: Sequence[int],
    known: dict[tuple[Entry, ...], int],
) -> int:
    # Shannon's expansion, f = bit ? high : low, as low XOR (bit AND (low XOR high)), three gates. Fewer do where the
    # two halves agree, or are opposite, in all entries that matter: none, or one XOR.
    bit = bits[len(low).bit_length() - 1]
    if (both := _joined(low, high)) is not None:
        return decided(builder, both, bits, known)
    if (both := _joined(low, tuple(None if entry is None else 1 - entry for entry in high))) is not None:
        return builder.xor(bit, decided(builder, both, bits, known))
    zero, one = decided(builder, low, bits, known), decided(builder, high, bits, known)
    return builder.xor(zero, builder.and_(bit, builder.xor(zero, one)))


def _joined(one: tuple[Entry, ...], other: tuple[Entry, ...]) -> tuple[Entry, ...] | None:
    """Entries that serve both, None where two of them differ."""
    pairs = list(zip(one, other, strict=True))
    if any(a is not None and b is not None and a != b for a, b in pairs):
        return None
    return tuple(b if a is None else a for a, b in pairs)
