"""A netlist as straight-line code: one assignment per gate, in the operators `~ & | ^`.

C, WGSL, JavaScript, Verilog and NumPy share these operators, so that one table of expressions serves them all, on
single bits and on words of many cells.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from difflogic.netlist import Netlist

FALSE, A, B, NOT_B, NOT_A, TRUE = 0, 3, 5, 10, 12, 15

READS = (0, 2, 2, 1, 2, 1, 2, 2, 2, 2, 1, 2, 1, 2, 2, 0)
"""How many inputs each of the sixteen gates depends on."""

_EXPRESSIONS = (
    "", "{a} & {b}", "{a} & ~{b}", "{a}", "~{a} & {b}", "{b}", "{a} ^ {b}", "{a} | {b}",
    "~({a} | {b})", "~({a} ^ {b})", "~{b}", "{a} | ~{b}", "~{a}", "~{a} | {b}", "~({a} & {b})", "",
)  # fmt: skip


class Line(NamedTuple):
    """The gate that makes a bit of a cell. It truly reads `a`, or `a` and a different `b`, or nothing."""

    bit: int
    gate: int
    a: int
    b: int

    @property
    def reads(self) -> tuple[int, ...]:
        """The bits that it depends on: none, one or two."""
        return (self.a, self.b)[: READS[self.gate]]


def lines(netlist: Netlist) -> list[Line]:
    """The gates that an output depends on, in order."""
    wanted = bytearray(netlist.inputs + len(netlist.gates))
    for output in netlist.outputs.tolist():
        wanted[output] = 1
    found = []
    rows = list(zip(netlist.gates.tolist(), netlist.wires.tolist(), strict=True))
    for bit in range(len(wanted) - 1, netlist.inputs - 1, -1):
        if wanted[bit]:
            gate, (a, b) = rows[bit - netlist.inputs]
            line = _line(bit, gate, a, b)
            for read in line.reads:
                wanted[read] = 1
            found.append(line)
    return found[::-1]


def _line(bit: int, gate: int, a: int, b: int) -> Line:
    """The same value with a gate of one input reading `a`, and a gate whose inputs are one bit reduced to such."""
    if a == b:
        gate = (FALSE, NOT_A, A, TRUE)[2 * (gate & 1) + (gate >> 3)]
    elif gate in (B, NOT_B):
        gate, a = (A if gate == B else NOT_A), b
    return Line(bit, gate, a, b)


def read_inputs(netlist: Netlist) -> list[int]:
    """The inputs that an output depends on, ascending: those that the lines and the outputs read."""
    bits = {bit for line in lines(netlist) for bit in line.reads} | set(netlist.outputs.tolist())
    return sorted(bit for bit in bits if bit < netlist.inputs)


def expression(line: Line, name: Callable[[int], str], zero: str, one: str) -> str:
    """The line's right side; `name` gives the variable of a bit, `zero` and `one` are the two constants."""
    if line.gate in (FALSE, TRUE):
        return one if line.gate == TRUE else zero
    return _EXPRESSIONS[line.gate].format(a=name(line.a), b=name(line.b))
