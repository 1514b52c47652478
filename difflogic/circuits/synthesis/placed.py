"""A picture as a circuit without training: each cell finds out where it lies, and looks up its colour there.

A cell has a number for its column and one for its row: the state of a shift register with feedback, all zeros until it
is known. A cell that knows its numbers tells them to its neighbours, and the register is shifted once for each column
to the right, and back once for each to the left. So knowledge spreads by a cell a step, from the one cell whose bits
are 1 at first, or from the border, which counts as such a cell.

Example: of a register `abc` that becomes `(b XOR c) a b`, the columns to the right of 111 are 011, 001 and 100, those
to the left of it 110, 101 and 010.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, reduce
from itertools import chain, combinations

import numpy as np
import numpy.typing as npt

from difflogic.circuits.synthesis import invariant
from difflogic.circuits.synthesis.cell import neighbour
from difflogic.circuits.synthesis.convert import to_netlist
from difflogic.circuits.synthesis.symmetric import Entry, decided
from difflogic.circuits.synthesis.xag import FALSE, TRUE, XAG, Builder, rebuilt
from difflogic.config.schema import Config
from difflogic.core import wiring
from difflogic.engine import job
from difflogic.model.cell_netlist import CellNetlist
from difflogic.model.deployment import Scenario

MOST_CELLS = 1 << 12
"""Of a picture: a circuit that looks up more of them is larger than what could be learned, and slow."""
MORE_BITS = 2
"""Of a register, at most, than it takes to number the cells of a side."""
COLUMNS, ROWS = ((0, 3, 6), (1, 7), (2, 5, 8)), ((0, 1, 2), (3, 5), (6, 7, 8))
"""The cells of a patch behind a cell, beside it and ahead."""
INSIDE = 0
"""The channel that tells the grid from what is outside, after the first step from nothing but the border."""

Cells = tuple[tuple[int, ...], ...]
Register = tuple[tuple[int, ...], npt.NDArray[np.int64]]
"""The bits that are fed back, and the number of each cell `[H, W]`."""


def placed(config: Config) -> XAG | None:
    """Return a graph from the 9*C bits of a patch to the cell's next C bits, of which the first show the picture.

    None if there are no `registers`.
    """
    task, bordered, found = config.task, config.task.start == "zeros", registers(config)
    if found is None:
        return None
    (row_taps, rows), (column_taps, columns) = found
    height, width, target = row_taps[-1] + 1, column_taps[-1] + 1, job.fixed_target(task)
    # Numbers that no cell has may mean anything; a cell that has none yet stays dark.
    table = np.full((1 << height, 1 << width, target.shape[-1]), None, dtype=object)
    table[0], table[:, 0] = 0, 0
    table[rows, columns] = target
    first = target.shape[-1] + bordered
    inside = first - 1 if bordered else None
    graphs = []
    for axes in ((0, 1), (1, 0)):  # which of them is decided first makes a circuit smaller or larger
        builder = Builder(wiring.PATCH * (first + height + width))
        told = _numbers(builder, first, row_taps, ROWS, inside)
        told += _numbers(builder, first + height, column_taps, COLUMNS, inside)
        own = [neighbour(first + bit, wiring.CENTRE) for bit in range(height + width)]
        bits, known = (own[height:] + own[:height], own)[axes[0]], dict[tuple[Entry, ...], int]()
        shown = [decided(builder, tuple(part.transpose(axes).flat), bits, known) for part in np.moveaxis(table, 2, 0)]
        graphs.append(rebuilt(builder.finish([*shown, *[TRUE] * bordered, *told])))
    return min(graphs, key=lambda graph: len(graph.gates))


@lru_cache(maxsize=16)
def registers(config: Config) -> tuple[Register, Register] | None:
    """Return the registers that number rows and columns in time; None if a cell cannot know its place.

    It cannot if the initial state is neither one cell nor nothing within a border, or if cells do not see all their
    neighbours. An image of more than MOST_CELLS has none either.
    """
    task, bordered = config.task, config.task.start == "zeros"
    if config.model.neighbourhood != "moore" or (config.model.periodic if bordered else task.start != "seed"):
        return None
    if task.height * task.width > MOST_CELLS:
        return None
    rows, columns = (_register(config, axis) for axis in range(2))
    return None if rows is None or columns is None else (rows, columns)


def _register(config: Config, axis: int) -> Register | None:
    """The feedback of a register that numbers rows or columns in time, and each cell's number `[H, W]`.

    None where there is none.
    """
    task, bordered = config.task, int(config.task.start == "zeros")
    side, cells = ((task.height, ROWS), (task.width, COLUMNS))[axis]
    for bits in range(side.bit_length(), side.bit_length() + MORE_BITS + 1):
        channels = bordered + bits
        like = CellNetlist.build(
            channels, config.model.periodic, [], [], [wiring.CENTRE] * channels, scenario=Scenario.of(config)
        )
        for others in chain.from_iterable(combinations(range(bits - 1), count) for count in range(1, bits)):
            taps, builder = (*others, bits - 1), Builder(wiring.PATCH * channels)
            told = _numbers(builder, bordered, taps, cells, INSIDE if bordered else None)
            netlist = to_netlist(builder.finish([*[TRUE] * bordered, *told]), like)
            # What a cell shows it has looked up by what it knew a step before.
            end = netlist.rollout(invariant.start_of(netlist)[None], min(task.judged_steps) - 1)[-1, 0, ..., bordered:]
            numbers: npt.NDArray[np.int64] = end @ (1 << np.arange(bits))
            if not numbers.all():  # knowledge spreads by a cell a step, whatever the taps are
                return None
            # Where both ends of a torus meet, a row or column may have several numbers, but no two have the same.
            places = np.indices(numbers.shape)[axis]
            if len(np.unique(numbers)) == len(np.unique(numbers * side + places)):
                return taps, numbers
    return None


def _numbers(builder: Builder, first: int, taps: Sequence[int], cells: Cells, inside: int | None) -> list[int]:
    """The literals of a register's next bits, in channels from `first` on; `taps`: the bits that are fed back.

    `inside`: the channel that is 0 outside the grid alone, where the border tells; then rows are all alike.
    """
    edges = [FALSE, FALSE]
    if inside is not None:
        cells = cells[0][1:2], (), cells[2][1:2]
        here = neighbour(inside, wiring.CENTRE)
        edges = [builder.and_(here, neighbour(inside, *cells[end]) ^ 1) for end in (0, 2)]

    def told(some: Sequence[int], edge: int = FALSE) -> list[int]:
        bits = range(first, first + taps[-1] + 1)
        return [reduce(builder.or_, (neighbour(bit, cell) for cell in some), edge) for bit in bits]

    own, behind, beside, ahead = (
        told([wiring.CENTRE]),
        told(cells[0], edges[0]),
        told(cells[1]),
        told(cells[2], edges[1]),
    )
    # Cells that know nothing are zeros, which a shift leaves zeros, and all others say the same: so OR joins them.
    shifted = [reduce(builder.xor, (behind[tap] for tap in taps)), *behind[:-1]]
    back = [*ahead[1:], reduce(builder.xor, (ahead[tap + 1] for tap in taps[:-1]), ahead[0])]
    unknown = reduce(builder.or_, own) ^ 1
    news = [reduce(builder.or_, each) for each in zip(shifted, back, beside, strict=True)]
    return [builder.or_(bit, builder.and_(unknown, new)) for bit, new in zip(own, news, strict=True)]
