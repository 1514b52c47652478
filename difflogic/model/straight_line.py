"""Convert netlists to straight-line code: one assignment per gate, with the operators `~ & | ^`.

C, WGSL, JavaScript, Verilog and NumPy share these operators. So one table of expressions is enough for all of them, for
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
"""Number of inputs that each of the sixteen gate functions depends on, indexed by gate id."""

EXPRESSIONS = (
    "", "{a} & {b}", "{a} & ~{b}", "{a}", "~{a} & {b}", "{b}", "{a} ^ {b}", "{a} | {b}",
    "~({a} | {b})", "~({a} ^ {b})", "~{b}", "{a} | ~{b}", "~{a}", "~{a} | {b}", "~({a} & {b})", "",
)  # fmt: skip
"""Expressions of the sixteen functions of inputs `{a}` and `{b}`; empty for constants, which differ by language."""


def on_inverted(gate: int, a: bool, b: bool) -> int:
    """Return the id of the gate that equals `gate` with its first input inverted if `a`, and its second if `b`."""
    # Bits of an id, highest first, are the results for 00, 01, 10, 11. Inverting a swaps the halves, rows 0x and 1x.
    # Inverting b swaps the rows within each half: 0010 (2, a AND NOT b) becomes 0001 (1, a AND b).
    if a:
        gate = (gate & 3) << 2 | gate >> 2
    if b:
        gate = (gate & 5) << 1 | (gate & 10) >> 1
    return gate


class Assignment(NamedTuple):
    """Gate that computes `bit` from bits `a` and `b`, from `a` only, or (if it is a constant) from no bit."""

    bit: int
    gate: int
    a: int
    b: int

    @property
    def reads(self) -> tuple[int, ...]:
        """The zero, one or two bits that the gate depends on."""
        return (self.a, self.b)[: READS[self.gate]]


def lines(netlist: Netlist) -> list[Assignment]:
    """Return the gates that any output depends on, in topological order (dead gate elimination)."""
    # Mark live bits from the outputs back to the inputs. A gate marks only the bits that it depends on.
    is_live = bytearray(netlist.inputs + len(netlist.gates))
    for output in netlist.outputs.tolist():
        is_live[output] = 1
    assignments = []
    rows = list(zip(netlist.gates.tolist(), netlist.wires.tolist(), strict=True))
    for bit in range(len(is_live) - 1, netlist.inputs - 1, -1):
        if is_live[bit]:
            gate, (a, b) = rows[bit - netlist.inputs]
            # The only input that matters, if there is one, becomes `a`. If both inputs are the same bit, only the
            # outputs for 00 (bit 3 of the id) and for 11 (bit 0) matter: its XOR with itself is FALSE, its AND the bit.
            if a == b:
                gate = (FALSE, NOT_A, A, TRUE)[2 * (gate & 1) + (gate >> 3)]
            elif gate in (B, NOT_B):
                gate, a = (A if gate == B else NOT_A), b
            line = Assignment(bit, gate, a, b)
            for read in line.reads:
                is_live[read] = 1
            assignments.append(line)
    return assignments[::-1]


def read_inputs(netlist: Netlist) -> list[int]:
    """Return the numbers of the inputs that any output depends on, in ascending order."""
    bits = {bit for line in lines(netlist) for bit in line.reads} | set(netlist.outputs.tolist())
    return sorted(bit for bit in bits if bit < netlist.inputs)


def expression(line: Assignment, name: Callable[[int], str], zero: str, one: str) -> str:
    """Return the right side of an assignment; `name` maps a bit to its variable, `zero` and `one` are the constants."""
    if line.gate in (FALSE, TRUE):
        return one if line.gate == TRUE else zero
    return EXPRESSIONS[line.gate].format(a=name(line.a), b=name(line.b))


@dataclass(frozen=True, eq=False)
class RegisterProgram:
    """Netlist as a program with few registers, for interpreters of gates.

    First, register `i` is loaded with input `patches[i]`, numbered `9*channel + patch`. Then the gates are computed in
    order. Finally the registers `outputs` are read. A register is reused after the last read of its value.

    For example, two inputs, `g = in0 AND in1`, `h = g XOR in1`, and the output `h` need two registers:

        r0 = in0, r1 = in1          patches
        r0 = r0 AND r1              the last read of in0: g takes its register
        r1 = r0 XOR r1              the last read of g and in1: h takes the register that was freed last
        output r1
    """

    patches: Index
    """Numbers of the inputs that are loaded into the first registers, int64 `[p]`."""
    code: Index
    """Gate id, registers of inputs a and b, and register of the result (possibly an input's), int64 `[n, 4]`."""
    outputs: Index
    """Registers of the outputs, int64 `[C]`."""
    registers: int


def register_program(netlist: Netlist) -> RegisterProgram:
    """Convert a netlist to a register program of its live gates, reusing the most recently freed register first."""
    patches, gates = read_inputs(netlist), lines(netlist)
    last_read = {bit: line.bit for line in gates for bit in line.reads}
    last_read |= dict.fromkeys(netlist.outputs.tolist(), len(netlist.gates) + netlist.inputs)
    register = {bit: index for index, bit in enumerate(patches)}
    # The last reader of a bit frees the bit's register before it allocates a register for its result, so that a result
    # may overwrite an input. Outputs are read after the last gate, so their registers are never freed.
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
