"""AIGER, ascii and binary: AND gates on literals, as ABC, model checkers and our exports write them.

A literal is twice a variable, and one more if it is inverted; 0 is FALSE. A latch begins at 0 unless it says 1.
Source: Biere, *The AIGER And-Inverter Graph (AIG) Format* (2007); Biere, Heljanko and Wieringa, *AIGER 1.9 and Beyond*
(2011).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from difflogic.circuits.readers.signals import Signals
from difflogic.circuits.synthesis.xag import FALSE, Builder
from difflogic.errors import CircuitError

MOST_VARIABLES = 1 << 22
"""Most variables of a file: its first line may promise any number in a few bytes."""
_HEAD = re.compile(rb"(aag|aig)((?: \d{1,9}){5})((?: \d{1,9}){0,4})\s*\n")
_SYMBOL = re.compile(r"([ilo]\d{1,9}) (\S.*)")
"""Name of an input, latch or output, by its place."""


def read(data: bytes) -> Signals:
    """Return the signals of a file, keyed by their literals. Raises CircuitError."""
    if (head := _HEAD.match(data)) is None or any(map(int, head[3].split())):
        raise CircuitError("The first line must be aag or aig and five numbers: of AIGER 1.9 only outputs are read.")
    variables, inputs, latches, outputs, ands = map(int, head[2].split())
    if max(variables, outputs) > MOST_VARIABLES or inputs + latches + ands > variables:
        raise CircuitError(
            f"Expected at most {MOST_VARIABLES} variables, and no more inputs, latches and ANDs than them."
        )
    is_binary, body = head[1] == b"aig", _Body(data, head.end())
    signals = Signals(is_named=False)
    signals.nodes[FALSE] = (), lambda builder, literals: FALSE
    own = [2 * bit + 2 if is_binary else body.numbers(1)[0] for bit in range(inputs)]
    states = [
        ([2 * (inputs + bit) + 2] if is_binary else []) + body.numbers(1 + (not is_binary)) for bit in range(latches)
    ]
    ends = [body.numbers(1)[0] for _ in range(outputs)]
    first = 2 * (1 + inputs + latches)
    gates = [body.deltas(first + 2 * k) if is_binary else body.numbers(3) for k in range(ands)]
    symbols, _, signals.comment = f"\n{data[body.place :].decode(errors='replace')}".partition("\nc\n")
    names = {match[1]: match[2] for match in map(_SYMBOL.fullmatch, symbols.splitlines()) if match}
    signals.is_named = bool(names)
    signals.inputs = {literal: names.get(f"i{k}", f"i{k}") for k, literal in enumerate(own)}
    for k, (literal, after, *reset) in enumerate(states):
        if reset not in ([], [0], [1]):
            raise CircuitError(f"Latch {k} must begin at 0 or 1.")
        signals.latches[literal] = names.get(f"l{k}", f"l{k}"), after, sum(reset)
    signals.outputs = [(names.get(f"o{k}", f"o{k}"), literal) for k, literal in enumerate(ends)]
    if len({*own, *(state[0] for state in states)}) < inputs + latches or any(
        each[0] % 2 for each in (*states, *gates)
    ):
        raise CircuitError("Inputs, latches and ANDs must have variables of their own, which are not inverted.")
    for result, *reads in gates:
        signals.drive(result, reads, _and)
    for literal in {*ends, *(state[1] for state in states), *(each for gate in gates for each in gate[1:])}:
        if literal % 2:
            signals.drive(literal, [literal - 1], _not)
    return signals


def _and(builder: Builder, literals: Sequence[int]) -> int:
    return builder.and_(*literals)


def _not(builder: Builder, literals: Sequence[int]) -> int:
    return literals[0] ^ 1


class _Body:
    """What stands behind the first line, from `place` on."""

    def __init__(self, data: bytes, place: int) -> None:
        self.data, self.place = data, place

    def numbers(self, least: int) -> list[int]:
        """Return the numbers of a line: so many, or one more, the first value of a latch. Raises CircuitError."""
        end = self.data.find(b"\n", self.place)
        line = self.data[self.place : end if end >= 0 else len(self.data)]
        words = line.split()
        if not least <= len(words) <= least + 1 or not all(word.isdigit() and len(word) < 10 for word in words):
            raise CircuitError(f"A line of {least} numbers was expected, got {line[:40]!r}.")
        self.place += len(line) + 1
        return list(map(int, words))

    def deltas(self, result: int) -> list[int]:
        """Return the literals of a binary AND: how far its inputs lie below it is written. Raises CircuitError."""
        high = result - self._delta()
        low = high - self._delta()
        if low < 0 or high >= result:
            raise CircuitError(f"The AND {result} reads what is not before it.")
        return [result, high, low]

    def _delta(self) -> int:
        """Return a number of seven bits a byte, the lowest first; the top bit says that more follow."""
        value = 0
        for shift in range(0, 35, 7):
            byte = self.data[self.place] if self.place < len(self.data) else 0
            self.place += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise CircuitError("The file has a number of more than 32 bits.")
