"""A diagram read back: what is on the paper makes a circuit again, which must be the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from difflogic.circuits.export.proofs.common import check_cells, vectors_for
from difflogic.circuits.export.schematic import on_inverted
from difflogic.errors import ExportError
from difflogic.netlist import Netlist, pack_bits, unpack_bits
from difflogic.topology import in_order

_GATES = {"AND": 1, "XOR": 6, "OR": 7, "NOR": 8, "XNOR": 9, "NAND": 14}
_NOT = 12


class End(NamedTuple):
    """A wire as a reader sees it: where it comes from, and whether a circle inverts it."""

    source: str
    inverted: bool


class Drawn(NamedTuple):
    """By the name of a mark on the paper."""

    inputs: Mapping[str, int]
    """The bit of each input."""
    gates: Mapping[str, tuple[str, Sequence[End]]]
    """The word in each gate, and what it reads."""
    outputs: Sequence[End]


def check_drawing(netlist: Netlist, drawn: Drawn, what: str) -> str:
    """The sentence of the proof. Raises ExportError."""
    vectors = vectors_for(netlist)
    try:
        read = _netlist(netlist, drawn)
    except (KeyError, ValueError) as error:
        raise ExportError(f"{what} has a wire that leads nowhere: {error}.") from error
    answers = unpack_bits(read.evaluate(pack_bits(vectors.inputs)), vectors.count)
    return check_cells(netlist, vectors, answers, f"the circuit that {what} shows")


def _netlist(like: Netlist, drawn: Drawn) -> Netlist:
    place = dict(drawn.inputs)
    names: list[str] = []
    for name in [*drawn.gates, *(f"not {index}" for index in range(len(drawn.outputs)))]:
        place[name] = like.inputs + len(names)
        names.append(name)
    types, wires = [], []
    for symbol, ends in drawn.gates.values():
        gate = 15 * int(symbol) if symbol in "01" else _GATES[symbol]
        a, b = ends or (End(next(iter(place)), False),) * 2
        types.append(on_inverted(gate, a.inverted, b.inverted))
        wires.append((place[a.source], place[b.source]) if ends else (0, 0))
    for end in drawn.outputs:
        types.append(_NOT if end.inverted else 3)
        wires.append((place[end.source],) * 2)
    outputs = [place[f"not {index}"] for index in range(len(drawn.outputs))]
    order, wires, outputs = in_order(like.inputs, wires, outputs, names)
    return Netlist.build(like.channels, like.periodic, [types[index] for index in order], wires, outputs)
