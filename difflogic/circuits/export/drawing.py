"""Layout of a circuit's drawing: two-input gates, with pass-throughs and NOTs merged into the wires.

Gates are placed in columns by depth, and ordered in each column so that few wires cross.
Source: Sugiyama, Tagawa and Toda, *Methods for visual understanding of hierarchical system structures* (1981): a
wire across several columns is a chain of waypoints, and each column is sorted repeatedly by the mean position of its
neighbours.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from math import inf
from statistics import fmean
from typing import NamedTuple

from difflogic.core import wiring
from difflogic.errors import CircuitError
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.function_netlist import FunctionNetlist
from difflogic.model.netlist import Netlist
from difflogic.model.straight_line import FALSE, NOT_A, TRUE, A, Assignment, lines, on_inverted, read_inputs

MAX_GATES = 400
"""Maximum number of gates in a drawing; a larger drawing is hard to follow and to lay out."""

SYMBOLS = {
    1: ("AND", (0, 0)), 2: ("AND", (0, 1)), 4: ("AND", (1, 0)), 6: ("XOR", (0, 0)), 7: ("OR", (0, 0)),
    8: ("NOR", (0, 0)), 9: ("XNOR", (0, 0)), 11: ("OR", (0, 1)), 13: ("OR", (1, 0)), 14: ("NAND", (0, 0)),
}  # fmt: skip
"""Mapping from ids of two-input gates to a symbol and, for inputs a and b, 1 if inverted."""

PLACES = (
    "above left", "above", "above right", "left", "itself", "right", "below left", "below", "below right",
)  # fmt: skip
"""Description of each patch position, in row-major order."""


class Wire(NamedTuple):
    """Wire from the gate or input that produces `bit`; if `inverted`, it is drawn with a circle at its end."""

    bit: int
    inverted: bool


class DrawnGate(NamedTuple):
    """Gate with the output `bit`. The constants, whose symbols are `0` and `1`, have no input wires."""

    bit: int
    symbol: str
    reads: tuple[Wire, ...]
    depth: int
    """Depth of the gate, which is its column: 1 if it reads no other gate."""


class Label(NamedTuple):
    """Label of an input or output: two lines of text, and the patch position to draw next to them, if any."""

    name: str
    note: str = ""
    patch: int | None = None


@dataclass(frozen=True)
class Schematic:
    """Parts of a drawing: `inputs` are the input bits that are read, `parts` the gates, `outputs` a wire per output."""

    netlist: Netlist
    inputs: tuple[int, ...]
    parts: tuple[DrawnGate, ...]
    outputs: tuple[Wire, ...]

    def input_label(self, bit: int) -> Label:
        """Return the label of the input `bit`."""
        match self.netlist:
            case CellNetlist(origin=origin):
                channel, patch = divmod(bit, wiring.PATCH)
                return Label(f"channel {origin[channel]}", PLACES[patch], patch)
            case FunctionNetlist(observations=names, thermometer=thermometer) if not self.netlist.reads_bits:
                dimension, index = thermometer.places[bit]
                return Label(names[dimension], f"≥ {thermometer.thresholds[dimension][index]:.6g}")
        return Label(self.netlist.bit_name(bit))

    def output_label(self, index: int) -> Label:
        """Return the label of output number `index`."""
        match self.netlist:
            case CellNetlist(origin=origin, visible=visible):
                return Label(f"channel {origin[index]}", "visible" if index < visible else "memory")
            case FunctionNetlist(choices=choices) if choices:
                chosen = ", ".join(name for number, name in enumerate(choices) if number >> index & 1)
                return Label(self.netlist.output_names[index], f"1: {chosen}"[:40])
        return Label(self.netlist.output_names[index])


def schematic(netlist: Netlist) -> Schematic:
    """Return the parts of a circuit's drawing. Raises CircuitError for more than MAX_GATES gates."""
    code = lines(netlist)
    gates = sum(len(line.reads) == 2 for line in code)
    if gates > MAX_GATES:
        raise CircuitError(
            f"A drawing must have at most {MAX_GATES} gates, got {gates}: simplify the circuit first "
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
        netlist=netlist,
        inputs=tuple(bit for bit in read_inputs(netlist) if bit in read),
        parts=tuple(part for part in parts if part.bit in read),
        outputs=outputs,
    )


def _part(line: Assignment, wires: dict[int, Wire]) -> DrawnGate | Wire:
    reads = [wires[bit] for bit in line.reads]
    if line.gate in (FALSE, TRUE):
        return DrawnGate(line.bit, str(line.gate & 1), (), 1)
    if line.gate in (A, NOT_A):
        return Wire(reads[0].bit, reads[0].inverted ^ (line.gate == NOT_A))
    gate = on_inverted(line.gate, *(wire.inverted for wire in reads))
    symbol, inverted = SYMBOLS[gate]
    ends = tuple(Wire(wire.bit, bool(flag)) for wire, flag in zip(reads, inverted, strict=True))
    return DrawnGate(line.bit, symbol, ends, 1)


_SWEEPS = 24

Point = tuple[float, float]


@dataclass
class _Spot:
    column: int
    height: float
    """Height of this gate, label or waypoint in rows."""
    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    y: float = 0.0


@dataclass(frozen=True)
class Positions:
    """Positions of a drawing's elements, in columns and rows; `inputs`, `parts` and `outputs` are vertical centres."""

    columns: int
    rows: float
    inputs: tuple[float, ...]
    parts: tuple[float, ...]
    outputs: tuple[float, ...]
    wires: dict[tuple[int, int], tuple[Point, ...]]
    """Waypoints `(column, y)` of each wire by `(bit, reader)`; readers are numbered parts first, then outputs."""


def layout(drawn: Schematic) -> Positions:
    """Return the positions of all parts and wires of a drawing, by a deterministic method."""
    last = 1 + max((part.depth for part in drawn.parts), default=0)
    spots = [_Spot(0, 1.4) for _ in drawn.inputs] + [_Spot(part.depth, 1.0) for part in drawn.parts]
    spots += [_Spot(last, 1.0) for _ in drawn.outputs]
    of_bit = {bit: index for index, bit in enumerate((*drawn.inputs, *(part.bit for part in drawn.parts)))}
    chains: dict[tuple[int, int], list[int]] = {}
    tracks: dict[tuple[int, int], int] = {}
    first = len(drawn.inputs)
    readers: list[tuple[Wire, ...]] = [*(part.reads for part in drawn.parts), *((wire,) for wire in drawn.outputs)]
    for reader, wires in enumerate(readers):
        for wire in wires:
            chains[wire.bit, reader] = _chain(spots, tracks, of_bit[wire.bit], first + reader)
    columns = [[index for index, spot in enumerate(spots) if spot.column == column] for column in range(last + 1)]
    _order(spots, columns)
    _place(spots, columns)
    return Positions(
        columns=last + 1,
        rows=max((spot.y + spot.height / 2 for spot in spots), default=0),
        inputs=tuple(spot.y for spot in spots[:first]),
        parts=tuple(spot.y for spot in spots[first : first + len(drawn.parts)]),
        outputs=tuple(spot.y for spot in spots[first + len(drawn.parts) : first + len(readers)]),
        wires={ends: tuple((spots[i].column, spots[i].y) for i in chain) for ends, chain in chains.items()},
    )


def _chain(spots: list[_Spot], tracks: dict[tuple[int, int], int], start: int, end: int) -> list[int]:
    """Connect two spots by a waypoint in each column between them; return these, which all wires from `start` share."""
    chain = []
    before = start
    for column in range(spots[start].column + 1, spots[end].column):
        if (start, column) not in tracks:
            tracks[start, column] = len(spots)
            spots.append(_Spot(column, 0.45))
            _join(spots, before, tracks[start, column])
        before = tracks[start, column]
        chain.append(before)
    _join(spots, before, end)
    return chain


def _join(spots: list[_Spot], left: int, right: int) -> None:
    spots[left].right.append(right)
    spots[right].left.append(left)


def _order(spots: list[_Spot], columns: list[list[int]]) -> None:
    """Sort each column by the mean position of each spot's neighbours, alternately those on its left and its right."""
    for column in columns:
        _stack(spots, column)
    for column, rightwards in _sweeps(columns):
        column.sort(key=lambda index: _centre(spots, index, rightwards))
        _stack(spots, column)


def _sweeps(columns: list[list[int]]) -> Iterator[tuple[list[int], bool]]:
    """Yield columns, each with True if its sweep goes rightwards, for `_SWEEPS` sweeps in alternating directions."""
    for sweep in range(_SWEEPS):
        rightwards = sweep % 2 == 0
        for column in columns[1:] if rightwards else columns[-2::-1]:
            yield column, rightwards


def _centre(spots: list[_Spot], index: int, left: bool) -> float:
    neighbours = spots[index].left if left else spots[index].right
    return fmean(spots[other].y for other in neighbours) if neighbours else spots[index].y


def _stack(spots: list[_Spot], column: Sequence[int]) -> None:
    """Place the spots of a column directly below each other, centred on 0."""
    y = -sum(spots[index].height for index in column) / 2
    for index in column:
        spots[index].y = y + spots[index].height / 2
        y += spots[index].height


def _place(spots: list[_Spot], columns: list[list[int]]) -> None:
    """Move spots as close to their neighbours as the order allows, then close vertical gaps and start at 0."""
    for column, rightwards in _sweeps(columns):
        ideal = [_centre(spots, index, rightwards) for index in column]
        for index, y in zip(column, _apart(spots, column, ideal), strict=True):
            spots[index].y = y
    bottom, lift = 0.0, -inf
    for spot in sorted(spots, key=lambda spot: spot.y - spot.height / 2):
        lift = max(lift, spot.y - spot.height / 2 - bottom)
        spot.y -= lift
        bottom = max(bottom, spot.y + spot.height / 2)


def _apart(spots: list[_Spot], column: Sequence[int], ideal: Sequence[float]) -> list[float]:
    """Return the positions closest to `ideal` without overlap or reordering, by isotonic regression."""
    steps = [(spots[one].height + spots[other].height) / 2 for one, other in pairwise(column)]
    offsets = list(accumulate(steps, initial=0.0))[: len(column)]
    # Three parts of height 1 with ideal position 5 have 5, 4 and 3 after subtracting offsets. These decrease, so the
    # parts overlap. They become one block with mean 4, at positions 4, 5 and 6.
    blocks: list[list[float]] = []  # sum, count
    for y, offset in zip(ideal, offsets, strict=True):
        blocks.append([y - offset, 1])
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] > blocks[-1][0] / blocks[-1][1]:
            total, count = blocks.pop()
            blocks[-1][0] += total
            blocks[-1][1] += count
    means = [total / count for total, count in blocks for _ in range(int(count))]
    return [mean + offset for mean, offset in zip(means, offsets, strict=True)]
