"""Lookup circuits of images: each cell computes its row and column, and looks up its colour.

Each row and column has a number: a state of a linear-feedback shift register, or zeros while unknown. A cell right
of a known one shifts that cell's number once, and a cell left of it shifts it back. Thus numbers spread by one cell per
step, from the cell whose bits are 1 in the initial state, or from outside the border, where all bits count as 1.

Example: if a shift turns `abc` into `(b XOR c) a b`, the columns to the right of 111 are 011, 001 and 100, and those to
the left are 110, 101 and 010.
"""

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
"""Maximum number of cells of an image; the circuit of a larger image is slow and has too many gates for training."""
MORE_BITS = 2
"""Maximum number of extra bits of a register, which are tried if no feedback works with fewer bits."""
COLUMNS, ROWS = ((0, 3, 6), (1, 7), (2, 5, 8)), ((0, 1, 2), (3, 5), (6, 7, 8))
"""Patch positions left of, in and right of the centre's column, and above, in and below its row, without the centre."""
INSIDE = 0
"""Channel of a bordered register that is 1 inside the grid and 0 outside, from the first step on."""

Cells = tuple[tuple[int, ...], ...]
Register = tuple[tuple[int, ...], npt.NDArray[np.int64]]
"""Taps of a shift register (the bits that are fed back), and the register's state in each cell, `[H, W]`."""


def placed(config: Config) -> XAG | None:
    """Return a graph from the 9*C bits of a patch to C bits that shows the task's image; None without `registers`."""
    task, bordered, both = config.task, config.task.start == "zeros", registers(config)
    if both is None:
        return None
    (row_taps, rows), (column_taps, columns) = both
    height, width, target = row_taps[-1] + 1, column_taps[-1] + 1, job.fixed_target(task)
    # Numbers that no cell has are don't cares; a cell without a number remains dark.
    table = np.full((1 << height, 1 << width, target.shape[-1]), None, dtype=object)
    table[0], table[:, 0] = 0, 0
    table[rows, columns] = target
    first = target.shape[-1] + bordered
    inside = first - 1 if bordered else None
    graphs = []
    for axes in ((0, 1), (1, 0)):  # the order of row and column bits affects the size of the circuit
        builder = Builder(wiring.PATCH * (first + height + width))
        next_bits = _numbers(builder, first, row_taps, ROWS, inside)
        next_bits += _numbers(builder, first + height, column_taps, COLUMNS, inside)
        own = [neighbour(first + bit, wiring.CENTRE) for bit in range(height + width)]
        bits, cache = (own[height:] + own[:height], own)[axes[0]], dict[tuple[Entry, ...], int]()
        shown = [decided(builder, tuple(part.transpose(axes).flat), bits, cache) for part in np.moveaxis(table, 2, 0)]
        graphs.append(rebuilt(builder.finish([*shown, *[TRUE] * bordered, *next_bits])))
    return min(graphs, key=lambda graph: len(graph.gates))


@lru_cache(maxsize=16)
def registers(config: Config) -> tuple[Register, Register] | None:
    """Return registers that number each cell's row and column before the last step; None if impossible.

    They require a seed cell or zeros within a border as initial state, Moore neighbourhoods, and at most MOST_CELLS.
    """
    task, bordered = config.task, config.task.start == "zeros"
    if config.model.neighbourhood != "moore" or (config.model.periodic if bordered else task.start != "seed"):
        return None
    if task.height * task.width > MOST_CELLS:
        return None
    rows, columns = (_register(config, axis) for axis in range(2))
    return None if rows is None or columns is None else (rows, columns)


def _register(config: Config, axis: int) -> Register | None:
    """Return a register that numbers rows (`axis` 0) or columns (1); None if there is none."""
    task, bordered = config.task, int(config.task.start == "zeros")
    side, cells = ((task.height, ROWS), (task.width, COLUMNS))[axis]
    for bits in range(side.bit_length(), side.bit_length() + MORE_BITS + 1):
        channels = bordered + bits
        outputs, scenario = [wiring.CENTRE] * channels, Scenario.of(config)
        like = CellNetlist.build(channels, config.model.periodic, [], [], outputs, scenario=scenario)
        for others in chain.from_iterable(combinations(range(bits - 1), count) for count in range(1, bits)):
            taps, builder = (*others, bits - 1), Builder(wiring.PATCH * channels)
            next_bits = _numbers(builder, bordered, taps, cells, INSIDE if bordered else None)
            netlist = to_netlist(builder.finish([*[TRUE] * bordered, *next_bits]), like)
            # A cell shows the colour for the number that it had one step before.
            end = netlist.rollout(invariant.start_of(netlist)[None], min(task.judged_steps) - 1)[-1, 0, ..., bordered:]
            numbers: npt.NDArray[np.int64] = end @ (1 << np.arange(bits))
            if not numbers.all():  # numbers spread by one cell per step for any taps
                return None
            # A row next to the wrap of a torus may have several numbers, but no two rows share a number.
            places = np.indices(numbers.shape)[axis]
            if len(np.unique(numbers)) == len(np.unique(numbers * side + places)):
                return taps, numbers
    return None


def _numbers(builder: Builder, first: int, taps: Sequence[int], cells: Cells, inside: int | None) -> list[int]:
    """Build the next state of a register in channels from `first` on, and return the literals of its bits.

    `taps` are the bits that are fed back. With a border, `inside` is the channel that is 0 outside the grid.
    """
    edges = [FALSE, FALSE]
    if inside is not None:
        cells = cells[0][1:2], (), cells[2][1:2]
        is_inside = neighbour(inside, wiring.CENTRE)
        edges = [builder.and_(is_inside, neighbour(inside, *cells[end]) ^ 1) for end in (0, 2)]

    def told(some: Sequence[int], edge: int = FALSE) -> list[int]:
        bits = range(first, first + taps[-1] + 1)
        return [reduce(builder.or_, (neighbour(bit, cell) for cell in some), edge) for bit in bits]

    own, behind = told([wiring.CENTRE]), told(cells[0], edges[0])
    beside, ahead = told(cells[1]), told(cells[2], edges[1])
    # Unknown registers are zeros, even if shifted, and known ones agree, so an OR combines them.
    shifted = [reduce(builder.xor, (behind[tap] for tap in taps)), *behind[:-1]]
    back = [*ahead[1:], reduce(builder.xor, (ahead[tap + 1] for tap in taps[:-1]), ahead[0])]
    unknown = reduce(builder.or_, own) ^ 1
    news = [reduce(builder.or_, literals) for literals in zip(shifted, back, beside, strict=True)]
    return [builder.or_(bit, builder.and_(unknown, new)) for bit, new in zip(own, news, strict=True)]
