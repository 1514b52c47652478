"""Convert netlists to straight-line code: one assignment per gate, with the operators `~ & | ^`.

C, WGSL, JavaScript, Verilog and NumPy share these operators, so that one table of expressions serves them all, for
single bits and for words of many cells. Interpreters run a `RegisterProgram` instead.
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
"""Number of inputs that each of the sixteen gates depends on."""

EXPRESSIONS = (
    "", "{a} & {b}", "{a} & ~{b}", "{a}", "~{a} & {b}", "{b}", "{a} ^ {b}", "{a} | {b}",
    "~({a} | {b})", "~({a} ^ {b})", "~{b}", "{a} | ~{b}", "~{a}", "~{a} | {b}", "~({a} & {b})", "",
)  # fmt: skip
"""Expressions of the sixteen gates of `{a}` and `{b}`; languages write the two constants differently."""


class Assignment(NamedTuple):
    """Gate that computes a bit from `a`, from `a` and another bit `b`, or, for a constant, from nothing."""

    bit: int
    gate: int
    a: int
    b: int

    @property
    def reads(self) -> tuple[int, ...]:
        """Bits that the gate depends on: none, one or two."""
        return (self.a, self.b)[: READS[self.gate]]


def lines(netlist: Netlist) -> list[Assignment]:
    """Return the gates that an output depends on, in topological order (dead gate elimination)."""
    # From the outputs back to the inputs. An input that a gate does not depend on is not live through that gate.
    is_live = bytearray(netlist.inputs + len(netlist.gates))
    for output in netlist.outputs.tolist():
        is_live[output] = 1
    assignments = []
    rows = list(zip(netlist.gates.tolist(), netlist.wires.tolist(), strict=True))
    for bit in range(len(is_live) - 1, netlist.inputs - 1, -1):
        if is_live[bit]:
            gate, (a, b) = rows[bit - netlist.inputs]
            line = _line(bit, gate, a, b)
            for read in line.reads:
                is_live[read] = 1
            assignments.append(line)
    return assignments[::-1]


def _line(bit: int, gate: int, a: int, b: int) -> Assignment:
    """Normalise a gate: one that depends on one input reads it as `a`."""
    # If both inputs are the same bit, only the outputs for 00, bit 3 of the id, and for 11, bit 0, are possible: XOR of
    # a bit with itself is FALSE, AND is the bit.
    if a == b:
        gate = (FALSE, NOT_A, A, TRUE)[2 * (gate & 1) + (gate >> 3)]
    elif gate in (B, NOT_B):
        gate, a = (A if gate == B else NOT_A), b
    return Assignment(bit, gate, a, b)


def read_inputs(netlist: Netlist) -> list[int]:
    """Return the inputs that an output depends on, ascending."""
    bits = {bit for line in lines(netlist) for bit in line.reads} | set(netlist.outputs.tolist())
    return sorted(bit for bit in bits if bit < netlist.inputs)


def expression(line: Assignment, name: Callable[[int], str], zero: str, one: str) -> str:
    """Return the right side of an assignment; `name` gives the variable of a bit, `zero` and `one` are constants."""
    if line.gate in (FALSE, TRUE):
        return one if line.gate == TRUE else zero
    return EXPRESSIONS[line.gate].format(a=name(line.a), b=name(line.b))


@dataclass(frozen=True, eq=False)
class RegisterProgram:
    """Netlist as a program with few registers, for interpreters of gates.

    Register `i` is loaded with input `patches[i]`, `9*channel + patch`; then the gates are computed in order; then
    `outputs` are read. Dead gates are removed, and a register is reused after the last read of its value.

    For example, two inputs, `g = in0 AND in1`, `h = g XOR in1`, and the output `h` need two registers:

        r0 = in0, r1 = in1          patches
        r0 = r0 AND r1              the last read of in0: g takes its register
        r1 = r0 XOR r1              the last read of g and in1: h takes the register that was freed last
        output r1
    """

    patches: Index
    """int64 `[p]`: inputs that are loaded into the first registers."""
    code: Index
    """int64 `[n, 4]`: gate id, registers of a and b, and register of the result, which may be that of a or b."""
    outputs: Index
    """int64 `[C]`: registers of the outputs."""
    registers: int


def register_program(netlist: Netlist) -> RegisterProgram:
    """Allocate registers for the live gates of a netlist, the one that was freed last first."""
    patches, gates = read_inputs(netlist), lines(netlist)
    last_read = {bit: line.bit for line in gates for bit in line.reads}
    last_read |= dict.fromkeys(netlist.outputs.tolist(), len(netlist.gates) + netlist.inputs)
    register = {bit: index for index, bit in enumerate(patches)}
    # The last reader of a bit frees its register before it allocates its own, so that its value may overwrite an input.
    # Outputs are read after the last gate, and so are never freed.
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
