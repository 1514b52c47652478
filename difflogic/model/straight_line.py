"""A netlist as straight-line code: one assignment per gate, in the operators `~ & | ^`.

C, WGSL, JavaScript, Verilog and NumPy share these operators, so that one table of expressions serves them all, on
single bits and on words of many cells. An interpreter has no names: it runs a `RegisterProgram`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from difflogic.model.netlist import Netlist

Index = npt.NDArray[np.int64]

FALSE, A, B, NOT_B, NOT_A, TRUE = 0, 3, 5, 10, 12, 15

READS = (0, 2, 2, 1, 2, 1, 2, 2, 2, 2, 1, 2, 1, 2, 2, 0)
"""How many inputs each of the sixteen gates depends on."""

EXPRESSIONS = (
    "", "{a} & {b}", "{a} & ~{b}", "{a}", "~{a} & {b}", "{b}", "{a} ^ {b}", "{a} | {b}",
    "~({a} | {b})", "~({a} ^ {b})", "~{b}", "{a} | ~{b}", "~{a}", "~{a} | {b}", "~({a} & {b})", "",
)  # fmt: skip
"""The sixteen gates of `{a}` and `{b}`; the two constants are written otherwise in each language."""


class Assignment(NamedTuple):
    """The gate that makes a bit of a cell. It truly reads `a`, or `a` and a different `b`, or nothing."""

    bit: int
    gate: int
    a: int
    b: int

    @property
    def reads(self) -> tuple[int, ...]:
        """The bits that it depends on: none, one or two."""
        return (self.a, self.b)[: READS[self.gate]]


def lines(netlist: Netlist) -> list[Assignment]:
    """The gates that an output depends on, in order."""
    # From the outputs backwards: a gate that nobody wants is left out, and with it all that it alone would read. A
    # gate that ignores an input does not want it, so that what looks connected may fall away too.
    wanted = bytearray(netlist.inputs + len(netlist.gates))
    for output in netlist.outputs.tolist():
        wanted[output] = 1
    found = []
    rows = list(zip(netlist.gates.tolist(), netlist.wires.tolist(), strict=True))
    for bit in range(len(wanted) - 1, netlist.inputs - 1, -1):  # from the last: who reads a gate comes after it
        if wanted[bit]:
            gate, (a, b) = rows[bit - netlist.inputs]
            line = _line(bit, gate, a, b)
            for read in line.reads:
                wanted[read] = 1
            found.append(line)
    return found[::-1]


def _line(bit: int, gate: int, a: int, b: int) -> Assignment:
    """Return the same value: a gate of one input reads `a`, and a gate whose inputs are one bit becomes such a gate."""
    # Where both inputs are one bit, only the outputs for 00, bit 3 of the id, and for 11, bit 0, can come up: XOR of a
    # bit with itself is FALSE, AND is the bit.
    if a == b:
        gate = (FALSE, NOT_A, A, TRUE)[2 * (gate & 1) + (gate >> 3)]
    elif gate in (B, NOT_B):
        gate, a = (A if gate == B else NOT_A), b
    return Assignment(bit, gate, a, b)


def read_inputs(netlist: Netlist) -> list[int]:
    """The inputs that an output depends on, ascending: those that the lines and the outputs read."""
    bits = {bit for line in lines(netlist) for bit in line.reads} | set(netlist.outputs.tolist())
    return sorted(bit for bit in bits if bit < netlist.inputs)


def expression(line: Assignment, name: Callable[[int], str], zero: str, one: str) -> str:
    """The line's right side; `name` gives the variable of a bit, `zero` and `one` are the two constants."""
    if line.gate in (FALSE, TRUE):
        return one if line.gate == TRUE else zero
    return EXPRESSIONS[line.gate].format(a=name(line.a), b=name(line.b))


@dataclass(frozen=True, eq=False)
class RegisterProgram:
    """A netlist as a short program over few registers: what an interpreter of gates runs.

    Input `patches[i]`, `9*channel + patch`, goes to register `i`; then the gates in order; then `outputs` are read.
    Only gates that an output depends on are computed, and a register is used again once its value has been read for
    the last time.

    For example, two inputs, `g = in0 AND in1`, `h = g XOR in1`, and the output `h` need two registers:

        r0 = in0, r1 = in1          patches
        r0 = r0 AND r1              in0 is not read again: its register takes g
        r1 = r0 XOR r1              g and in1 are read for the last time: h takes the register that was freed last
        output r1
    """

    patches: Index
    """int64 `[p]`."""
    code: Index
    """int64 `[n, 4]`: gate id, the registers of a and b, and the register that its value goes to, maybe one of them."""
    outputs: Index
    """int64 `[C]`: registers."""
    registers: int


def register_program(netlist: Netlist) -> RegisterProgram:
    """Registers are handed out in order, the one freed last first."""
    patches, gates = read_inputs(netlist), lines(netlist)
    last_read = {bit: line.bit for line in gates for bit in line.reads}
    last_read |= dict.fromkeys(netlist.outputs.tolist(), len(netlist.gates) + netlist.inputs)
    register = {bit: index for index, bit in enumerate(patches)}
    # A bit's last reader gives its register back before its own value takes one: the value may then overwrite an
    # input in place. What an output shows is read after the last gate, and so is never given back.
    free: list[int] = []
    registers = len(patches)
    code = []
    for line in gates:
        a, b = ([register[bit] for bit in line.reads] * 2 or [0, 0])[:2]
        free.extend(register[bit] for bit in line.reads if last_read[bit] == line.bit)
        if not free:
            free.append(registers)
            registers += 1
        register[line.bit] = free.pop()
        code.append((line.gate, a, b, register[line.bit]))
    return RegisterProgram(
        np.array(patches, dtype=np.int64),
        np.array(code, dtype=np.int64).reshape(-1, 4),
        np.array([register[output] for output in netlist.outputs.tolist()], dtype=np.int64),
        registers,
    )
