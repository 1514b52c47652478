"""Reader of ASCII and binary AIGER, files of AND gates that ABC, model checkers and difflogic write.

A literal is twice the variable's number, plus one if inverted; 0 is FALSE. Latches begin at 0 unless specified as 1.
Source: Biere, *The AIGER And-Inverter Graph (AIG) Format* (2007); Biere, Heljanko and Wieringa, *AIGER 1.9 and Beyond*
(2011).
"""

import io
import re

from difflogic.circuits.readers.signals import Signals, row
from difflogic.errors import CircuitError
from difflogic.model.straight_line import FALSE, NOT_A

MOST_VARIABLES = 1 << 22
"""Maximum number of variables in a file, since the first line may claim any number."""
_HEAD = re.compile(rb"(aag|aig)((?: \d{1,9}){5})((?: \d{1,9}){0,4})\s*\n")
_SYMBOL = re.compile(r"^([ilo]\d{1,9}) (\S.*)$", re.MULTILINE)
"""Pattern of a line that names an input, latch or output: letter and number, then the name."""


def read(data: bytes) -> Signals:
    """Parse the contents of an AIGER file. Raises CircuitError if they are invalid."""
    if (head := _HEAD.match(data)) is None or any(map(int, head[3].split())):
        raise CircuitError(
            "The first line must be aag or aig and five numbers of at most nine digits; bad states, constraints, "
            "justice and fairness of AIGER 1.9 are unsupported."
        )
    most, inputs, latches, outputs, ands = map(int, head[2].split())
    if max(most, outputs) > MOST_VARIABLES or inputs + latches + ands > most:
        raise CircuitError(f"Expected at most {MOST_VARIABLES} variables, and at least one per input, latch and AND.")
    is_binary, file = head[1] == b"aig", io.BytesIO(data[head.end() :])
    # A binary file omits the literals of inputs, latches and ANDs, which are 2, 4, ... in this order.
    own, latched, results = (
        [[literal] if is_binary else [] for literal in range(2 * start + 2, 2 * (start + count) + 2, 2)]
        for start, count in ((0, inputs), (inputs, latches), (inputs + latches, ands))
    )
    starts = own if is_binary else [_numbers(file, 1) for _ in own]
    states = [[*literal, *_numbers(file, 2 - is_binary, 3 - is_binary)] for literal in latched]
    ends = [_numbers(file, 1)[0] for _ in range(outputs)]
    gates = [_deltas(file, *literal) if is_binary else _numbers(file, 3) for literal in results]
    if any(row[0] % 2 for row in (*starts, *states, *gates)) or any(sum(state[2:]) > 1 for state in states):
        raise CircuitError("Inputs, latches and ANDs must have even literals, and latches an initial value of 0 or 1.")
    symbols, _, comment = f"\n{file.read().decode(errors='replace')}".partition("\nc\n")
    names: dict[str, str] = dict(_SYMBOL.findall(symbols))
    signals = {literal: names.get(f"i{place}", f"i{place}") for place, [literal] in enumerate(starts)}
    signals |= {state[0]: names.get(f"l{place}", f"l{place}") for place, state in enumerate(states)}

    def signal(literal: int) -> str:
        return signals.get(literal, f"literal {literal}")

    inverted = {literal for literal in (*ends, *(state[1] for state in states)) if literal % 2}
    return Signals(
        inputs=[signal(literal) for [literal] in starts],
        latches=[(signal(state[0]), signal(state[1]), sum(state[2:])) for state in states],
        outputs=[(names.get(f"o{place}", f"o{place}"), signal(literal)) for place, literal in enumerate(ends)],
        # The constant, the inverters, and the ANDs, whose inputs may be inverted.
        gates=[
            row(signal(0), FALSE),
            *(row(signal(literal), NOT_A, signal(literal - 1)) for literal in inverted),
            *(row(signal(gate), 1 << 2 * (a & 1) + (b & 1), signal(a & ~1), signal(b & ~1)) for gate, a, b in gates),
        ],
        comment=comment,
        is_named=bool(names),
    )


def _numbers(file: io.BytesIO, least: int, most: int | None = None) -> list[int]:
    """Return the numbers in the next line. Raises CircuitError unless there are `least` to `most` (default `least`)."""
    words = (line := file.readline().strip()).split()
    if not least <= len(words) <= (most or least) or not all(word.isdigit() and len(word) < 10 for word in words):
        raise CircuitError(f"Expected a line of {least} numbers, got {line[:40]!r}.")
    return list(map(int, words))


def _deltas(file: io.BytesIO, result: int) -> list[int]:
    """Return the literals of a binary AND: `result`, larger input and smaller input. Raises CircuitError."""
    high = result - _delta(file)
    low = high - _delta(file)
    if low < 0 or high >= result:
        raise CircuitError(f"The AND {result} reads a literal that is not defined before it.")
    return [result, high, low]


def _delta(file: io.BytesIO) -> int:
    """Decode a number with seven bits per byte, lowest first; the top bit of a byte is 1 if more bytes follow."""
    value = 0
    for shift in range(0, 35, 7):
        [byte] = file.read(1) or b"\0"
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value
    raise CircuitError("The file contains a number of more than 32 bits.")
