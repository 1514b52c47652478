"""Where the parts of a schematic stand: columns by depth, ordered so that few wires cross.

Source: Sugiyama, Tagawa and Toda, *Methods for visual understanding of hierarchical system structures* (1981): a
wire across several columns is a chain of waypoints, and each column is sorted again and again by where its
neighbours stand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from math import inf
from statistics import fmean

from difflogic.circuits.export.schematic import Schematic, Wire

_SWEEPS = 24

Point = tuple[float, float]


@dataclass
class _Spot:
    column: int
    height: float
    """Of what stands there, in rows."""
    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    y: float = 0.0


@dataclass(frozen=True)
class Layout:
    """Columns and rows, in units that the drawing chooses; `y` is a centre, of inputs, parts and outputs."""

    columns: int
    rows: float
    inputs: tuple[float, ...]
    parts: tuple[float, ...]
    outputs: tuple[float, ...]
    wires: dict[tuple[int, int], tuple[Point, ...]]
    """The waypoints `(column, y)` between a bit and a reader: a part's index, or that of an output after them."""


def layout(drawn: Schematic) -> Layout:
    """Deterministic: the same schematic is placed the same."""
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
    return Layout(
        columns=last + 1,
        rows=max((spot.y + spot.height / 2 for spot in spots), default=0),
        inputs=tuple(spot.y for spot in spots[:first]),
        parts=tuple(spot.y for spot in spots[first : first + len(drawn.parts)]),
        outputs=tuple(spot.y for spot in spots[first + len(drawn.parts) : first + len(readers)]),
        wires={ends: tuple((spots[i].column, spots[i].y) for i in chain) for ends, chain in chains.items()},
    )


def _chain(spots: list[_Spot], tracks: dict[tuple[int, int], int], start: int, end: int) -> list[int]:
    """The spots between two, one per column; wires from one spot share them."""
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
    """Each column by the mean of its neighbours, rightwards and leftwards in turn."""
    for column in columns:
        _stack(spots, column)
    for sweep in range(_SWEEPS):
        rightwards = sweep % 2 == 0
        for column in columns[1:] if rightwards else columns[-2::-1]:
            column.sort(key=lambda index: _centre(spots, index, rightwards))
            _stack(spots, column)


def _centre(spots: list[_Spot], index: int, left: bool) -> float:
    beside = spots[index].left if left else spots[index].right
    return fmean(spots[other].y for other in beside) if beside else spots[index].y


def _stack(spots: list[_Spot], column: Sequence[int]) -> None:
    """One below the other, centred around 0."""
    y = -sum(spots[index].height for index in column) / 2
    for index in column:
        spots[index].y = y + spots[index].height / 2
        y += spots[index].height


def _place(spots: list[_Spot], columns: list[list[int]]) -> None:
    """Heights that follow the neighbours as far as the order allows; then everything below 0, without gaps."""
    for sweep in range(_SWEEPS):
        rightwards = sweep % 2 == 0
        for column in columns[1:] if rightwards else columns[-2::-1]:
            wanted = [_centre(spots, index, rightwards) for index in column]
            for index, y in zip(column, _apart(spots, column, wanted), strict=True):
                spots[index].y = y
    bottom, lift = 0.0, -inf
    for spot in sorted(spots, key=lambda spot: spot.y - spot.height / 2):
        lift = max(lift, spot.y - spot.height / 2 - bottom)
        spot.y -= lift
        bottom = max(bottom, spot.y + spot.height / 2)


def _apart(spots: list[_Spot], column: Sequence[int], wanted: Sequence[float]) -> list[float]:
    """The places nearest to those wanted, in the given order and without overlap.

    Blocks of neighbours that would overlap are merged and stand at their mean: isotonic regression.
    """
    steps = [(spots[one].height + spots[other].height) / 2 for one, other in pairwise(column)]
    offsets = list(accumulate(steps, initial=0.0))[: len(column)]
    blocks: list[list[float]] = []  # sum of wishes, count
    for y, offset in zip(wanted, offsets, strict=True):
        blocks.append([y - offset, 1])
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] > blocks[-1][0] / blocks[-1][1]:
            total, count = blocks.pop()
            blocks[-1][0] += total
            blocks[-1][1] += count
    means = [total / count for total, count in blocks for _ in range(int(count))]
    return [mean + offset for mean, offset in zip(means, offsets, strict=True)]
