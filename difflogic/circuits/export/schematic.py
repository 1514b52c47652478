"""A circuit as it is drawn: gates of two inputs, pass-throughs and NOT folded into the wires between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from difflogic import wiring
from difflogic.errors import CircuitError
from difflogic.netlist import Netlist
from difflogic.straight_line import FALSE, NOT_A, TRUE, A, Line, lines, read_inputs

MAX_GATES = 400
"""What a person can still follow, and a layout still place."""

_SYMBOLS = {
    1: ("AND", (0, 0)), 2: ("AND", (0, 1)), 4: ("AND", (1, 0)), 6: ("XOR", (0, 0)), 7: ("OR", (0, 0)),
    8: ("NOR", (0, 0)), 9: ("XNOR", (0, 0)), 11: ("OR", (0, 1)), 13: ("OR", (1, 0)), 14: ("NAND", (0, 0)),
}  # fmt: skip
"""How a gate is drawn: its name, and which of its inputs are inverted."""

PLACES = (
    "above left", "above", "above right", "left", "itself", "right", "below left", "below", "below right",
)  # fmt: skip
"""Patch positions in words."""


class Wire(NamedTuple):
    """From a part, by its bit; inverted where a circle is drawn at its end."""

    bit: int
    inverted: bool


class Part(NamedTuple):
    """A gate, or a constant `0` or `1`, which reads nothing."""

    bit: int
    symbol: str
    reads: tuple[Wire, ...]
    depth: int
    """1 for what reads inputs only, or nothing."""


@dataclass(frozen=True)
class Schematic:
    """`inputs` are the bits that something reads; `outputs` one wire per channel."""

    inputs: tuple[int, ...]
    parts: tuple[Part, ...]
    outputs: tuple[Wire, ...]
    channels: tuple[int, ...]
    """What each channel is called."""
    visible: int

    def place(self, bit: int) -> tuple[int, int]:
        """The channel's name and the patch position of an input."""
        channel, patch = divmod(bit, wiring.PATCH)
        return self.channels[channel], patch


def schematic(netlist: Netlist) -> Schematic:
    """What to draw. Raises CircuitError where it is too much."""
    code = lines(netlist)
    gates = sum(len(line.reads) == 2 for line in code)
    if gates > MAX_GATES:
        raise CircuitError(
            f"A drawing of {gates} gates cannot be followed, at most {MAX_GATES} are drawn: simplify the circuit first "
            "(difflogic simplify)."
        )
    wires = {bit: Wire(bit, False) for bit in range(netlist.inputs)}
    depths = dict.fromkeys(wires, 0)
    parts = []
    for line in code:
        part = _part(line, wires)
        if isinstance(part, Wire):
            wires[line.bit] = part
        else:
            depth = 1 + max((depths[wire.bit] for wire in part.reads), default=0)
            parts.append(part._replace(depth=depth))
            wires[line.bit], depths[line.bit] = Wire(line.bit, False), depth
    outputs = tuple(wires[output] for output in netlist.outputs.tolist())
    read = {wire.bit for part in parts for wire in part.reads} | {wire.bit for wire in outputs}
    return Schematic(
        inputs=tuple(bit for bit in read_inputs(netlist) if bit in read),
        parts=tuple(part for part in parts if part.bit in read),
        outputs=outputs,
        channels=netlist.origin,
        visible=netlist.visible,
    )


def _part(line: Line, wires: dict[int, Wire]) -> Part | Wire:
    reads = [wires[bit] for bit in line.reads]
    if line.gate in (FALSE, TRUE):
        return Part(line.bit, str(line.gate & 1), (), 1)
    if line.gate in (A, NOT_A):
        return Wire(reads[0].bit, reads[0].inverted ^ (line.gate == NOT_A))
    gate = on_inverted(line.gate, *(wire.inverted for wire in reads))
    symbol, inverted = _SYMBOLS[gate]
    ends = tuple(Wire(wire.bit, bool(flag)) for wire, flag in zip(reads, inverted, strict=True))
    return Part(line.bit, symbol, ends, 1)


def on_inverted(gate: int, a: bool, b: bool) -> int:
    """The gate that does on inverted inputs what `gate` does on plain ones: its truth table with rows exchanged."""
    if a:
        gate = (gate & 3) << 2 | gate >> 2
    if b:
        gate = (gate & 5) << 1 | (gate & 10) >> 1
    return gate
