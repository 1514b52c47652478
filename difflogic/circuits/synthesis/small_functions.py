"""What a truth table can be made of: literals that are there, and a few new gates on them.

The search follows resubstitution with don't-cares (Mishchenko, Brayton, Jiang and Jang, *Scalable
don't-care-based logic optimization and resynthesis*, 2011), with XOR as a gate of its own: AND needs two
literals that cover the table, OR is the same on the complement, XOR is a look-up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from difflogic.circuits.synthesis.xag import FALSE, TRUE, Builder, mapped


class NewGate(NamedTuple):
    """A new gate on two functions, whose result may be inverted."""

    xor: bool
    a: SmallFunction
    b: SmallFunction
    inverted: bool


SmallFunction = int | NewGate
"""A literal that is there, or a new gate."""

Divisors = Sequence[tuple[int, int]]
"""Plain literals with their tables."""


def cost(function: SmallFunction) -> int:
    """Its new gates."""
    return 0 if isinstance(function, int) else 1 + cost(function.a) + cost(function.b)


def nodes(function: SmallFunction) -> list[int]:
    """The nodes it reads."""
    return [function >> 1] if isinstance(function, int) else nodes(function.a) + nodes(function.b)


def build(builder: Builder, function: SmallFunction, literals: Sequence[int]) -> int:
    """Its literal in `builder`, where `literals[node]` stand for the nodes it reads."""
    if isinstance(function, int):
        return mapped(function, literals)
    a, b = build(builder, function.a, literals), build(builder, function.b, literals)
    return (builder.xor(a, b) if function.xor else builder.and_(a, b)) ^ function.inverted


def find(table: int, care: int, ones: int, gates: int, divisors: Divisors) -> Iterator[SmallFunction]:
    """Functions of `gates` new gates at most, that agree with `table` where `care` is 1; few gates first, mostly."""
    # A function may be anything outside of `care`: it has to be 1 on `on`, 0 on `off`, and nothing else is asked.
    #
    # Of two inputs, with the tables a = 1010 and b = 1100, wanted is 0010, which is a AND NOT b.
    #     care 1111: on = 0010, off = 1101. Neither a nor b is one of the two, so a gate is needed. a and NOT b = 0011
    #                are both 1 where `on` is. a lets through 1000 of `off`, NOT b lets through 0001: nothing together.
    #     care 0111: a = b = 1 never occurs. on = 0010, off = 0101, and a & care = 0010 is `on`: no gate is needed.
    on = table & care
    off = on ^ care
    if not on or not off:
        yield TRUE if on else FALSE
        return
    # The table of known functions. The first divisor that computes a value stands for all that do.
    there: dict[int, int] = {}
    for literal, value in divisors:
        there.setdefault(value & care, literal)
    if on in there:
        yield there[on]
    if off in there:
        yield there[off] ^ 1
    if gates:
        yield from _ands(on, off, ones, gates, divisors)
        yield from _xors(on, off, care, ones, gates, divisors, there)


def _ands(on: int, off: int, ones: int, gates: int, divisors: Divisors) -> Iterator[SmallFunction]:
    """AND, and OR as the complement of an AND."""
    for inverted, wanted, unwanted in ((False, on, off), (True, off, on)):
        # An OR that is 1 on `on` is NOT the AND of two opposites that is 1 on `off`, so one search with the sides
        # exchanged finds it. Whatever is 1 on all that is wanted is half of an AND; two of them are a whole one where
        # nothing unwanted gets through both.
        covers = _covers(wanted, unwanted, divisors)
        for index, (literal, through) in enumerate(covers):
            for other, also in covers[index + 1 :]:
                if not through & also:
                    yield NewGate(False, literal, other, inverted)
        for literal, through in covers if gates > 1 else ():
            if through != unwanted:
                # The other half may be a new gate. It must be 1 on what is wanted and 0 on what this literal lets
                # through; the rest of the unwanted is stopped already, and is a don't-care now.
                for function in find(wanted, wanted | through, ones, gates - 1, divisors):
                    if isinstance(function, NewGate):
                        yield NewGate(False, literal, function, inverted)


def _covers(wanted: int, unwanted: int, divisors: Divisors) -> list[tuple[int, int]]:
    """Literals that are 1 wherever `wanted` is, with what they let through besides."""
    covers = []
    for literal, value in divisors:
        if not wanted & ~value:
            covers.append((literal, value & unwanted))
        if not wanted & value:
            covers.append((literal ^ 1, ~value & unwanted))
    return covers


def _xors(
    on: int, off: int, care: int, ones: int, gates: int, divisors: Divisors, there: dict[int, int]
) -> Iterator[SmallFunction]:
    for literal, value in divisors:
        for inverted, wanted in ((False, on), (True, off)):
            # If f = d XOR e then e = d XOR f: so the partner of each divisor is looked up, instead of trying all pairs.
            other = there.get((value ^ wanted) & care)
            if other is not None and other != literal:
                yield NewGate(True, literal, other, inverted)
        if gates > 1:
            for function in find(on ^ (value & care), care, ones, gates - 1, divisors):
                if isinstance(function, NewGate):
                    yield NewGate(True, literal, function, False)
