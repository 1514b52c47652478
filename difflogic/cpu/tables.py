"""Tables that describe a batch of grids to compiled code, computed once in NumPy.

Compiled functions are specialised for the types of these fields, which must therefore never change: int64 numbers, and
C-contiguous arrays of the types that are documented here.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from difflogic.core.wiring import PATCH
from difflogic.cpu.codegen.vectors import LINE, TILE
from difflogic.engine.shape import Array, Shape

MAX_BLOCKS = 64
"""Maximum number of blocks: every CA step adds to the moments of all blocks, and more would not fit the cache."""


class TileGrid(NamedTuple):
    """Tables of one batch of grids. The cells of a channel follow each other, with a guard before and after them."""

    # Example: one torus of 3x3 cells, which is one tile with 23 unused lanes.
    #
    #     0 1 2    Position f = 3*dy + dx of a patch is `shifts[f]` cells away: -4 -3 -2, -1 0 1, 2 3 4. For cell 4 this
    #     3 4 5    is right at every f. For cell 3 it is wrong at f 0, 3 and 6: one cell before it is cell 2, the end of
    #     6 7 8    the row above, while its left neighbour on the torus is cell 5.
    #
    # So a tile is loaded at its shift, in one instruction, and `lanes[f]` marks the lanes in which that is right: for f
    # 0 lanes 4, 5, 7 and 8, the bits of 0b110110000. The other lanes become 0, the value outside a grid that is no
    # torus. On a torus `wrapped` corrects them one by one: for f 0 it lists (0, 8), (1, 6), (2, 7), (3, 2), (6, 5),
    # each a lane and its neighbour's cell. There are few of them, since only cells at the border have such neighbours.

    batch: int
    height: int
    width: int
    cells_per_grid: int
    cells: int
    tiles: int
    blocks: int
    """Number of blocks of consecutive tiles, each with its own sum of moments: at most MAX_BLOCKS."""
    steps: int
    loss_channels: int
    guard: int
    stride: int
    """Number of floats per channel: an odd number of cache lines, so that channels do not share cache sets."""
    shifts: Array
    """int64 `[9]`, or `[1]` without perception: distance in cells to the neighbour at position `f`; see `lanes`."""
    lanes: Array
    """uint64 `[9, tiles]`: lanes in which `shifts[f]` applies; other neighbours are outside or in `wrapped`."""
    wrapped_starts: Array
    """int64 `[9 * tiles + 1]`: first index in `wrapped` for position `f` and a tile, at `f * tiles + tile`."""
    wrapped: Array
    """int64 `[., 2]`: a lane, and the cell of its neighbour across the border of a torus."""
    marks: Array
    """int64 `[T + 1, 2]`: for each state its index among the loss states and among the damaged states, or -1."""


def make_grid(shape: Shape, patch: int = PATCH) -> TileGrid:
    """Return the tables of a batch of grids whose cells read `patch` cells each, 9 or 1."""
    # Tiles divide the cells of the complete batch, and may contain the end of one grid and the beginning of the next.
    tiles = -(-shape.cells // TILE)
    near, shifts, guard = np.arange(shape.cells)[None], np.zeros(1), 0
    if patch > 1:
        near = neighbours(shape)
        shifts = np.array([(f // 3 - 1) * shape.width + f % 3 - 1 for f in range(PATCH)])
        # The largest shift is a row and a cell; a guard of complete cache lines keeps tiles aligned.
        guard = -(-(shape.width + 1) * 4 // LINE) * LINE // 4
    lines = -(-(2 * guard + tiles * TILE) * 4 // LINE)
    # A cell of the next grid of the batch may also be `shifts[f]` away, but `near` does not contain it.
    straight = (near >= 0) & (near == np.arange(shape.cells) + shifts[:, None])
    lanes = np.zeros((patch, tiles * TILE), dtype=np.uint64)
    lanes[:, : shape.cells] = straight
    bits = (lanes.reshape(patch, tiles, TILE) << np.arange(TILE, dtype=np.uint64)).sum(axis=2, dtype=np.uint64)
    position, cell = np.nonzero((near >= 0) & ~straight)
    counts = np.bincount(position * tiles + cell // TILE, minlength=patch * tiles)
    return TileGrid(
        batch=shape.batch,
        height=shape.height,
        width=shape.width,
        cells_per_grid=shape.cells_per_grid,
        cells=shape.cells,
        tiles=tiles,
        blocks=min(tiles, MAX_BLOCKS),
        steps=shape.steps,
        loss_channels=shape.loss_channels,
        guard=guard,
        stride=(lines | 1) * LINE // 4,
        shifts=shifts.astype(np.int64),
        lanes=bits,
        wrapped_starts=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        wrapped=np.stack([cell % TILE, near[position, cell]], axis=1).astype(np.int64),
        marks=make_marks(shape),
    )


class StepGrids(NamedTuple):
    """Smaller grids for the first steps, on which cells that are equal for every circuit are computed only once."""

    # Example: a torus of 6x6 zeros, except for one cell in row 3. The result of step 0 may differ in rows 2, 3 and 4;
    # all other rows equal row 0. So step 0 is computed on rows 0, 2, 3 and 4, as a separate torus: there row 0 lies
    # above row 2, and it equals row 1. The result of step 1 may differ in all rows, so that step 1 is computed on all
    # six. It reads the result of row 0 as rows 0, 1 and 5: the state is spread out. Columns are treated alike. In the
    # backward pass the adjoint of a cell of step 0 is the sum over the cells that it was spread to.

    of_step: Array
    """int64 `[T]`: index of each step's grid in `grids`, 0 for the complete grid."""
    spread: Array
    """bool `[T]`: True if the result of the step is spread out to a larger grid."""
    grids: Any
    """TileGrid whose fields have an additional first axis, padded to the largest grid."""
    copy_starts: Array
    """int64 `[T, cells + 1]`: first index in `copies` of the cells that each cell of a step is spread to."""
    copies: Array
    """int64 `[T, cells]`: destination cells to which each source cell of a step is copied, grouped by source."""


def step_grids(grid: TileGrid, shape: Shape, patch: int, start: Array | None) -> tuple[StepGrids, Array, Array]:
    """Find the smaller grids of rollouts from `start [H, W, C]`; if that is None, all steps use the complete grid.

    Also return int64 `[n]`, the cells of the initial state that step 0 reads, and int64 `[H*W]`, for each cell of the
    grid the index of its representative among these. The last state is always complete.
    """
    of_step, spread = np.zeros(shape.steps, dtype=np.int64), np.zeros(shape.steps, dtype=np.bool_)
    if start is None:
        nowhere, everywhere = np.zeros((0, 0), dtype=np.int64), np.arange(shape.cells_per_grid)
        return StepGrids(of_step, spread, _stacked([grid]), nowhere, nowhere), everywhere, everywhere
    kinds = [np.unique(lines, axis=0, return_inverse=True)[1].ravel() for lines in (start, start.swapaxes(0, 1))]
    rows, columns = (_different(line_kinds, shape.periodic, shape.steps) for line_kinds in kinds)
    near = zip(rows, columns, strict=True)
    cells, like = zip(*(_product(*lines, shape.width) for lines in near), strict=True)
    grids = [grid]
    copy_starts = np.zeros((shape.steps, shape.cells + 1), dtype=np.int64)
    copies = np.zeros((shape.steps, shape.cells), dtype=np.int64)
    samples = np.arange(shape.batch)[:, None]
    for step, (step_rows, _), (step_columns, _) in zip(range(shape.steps), rows, columns, strict=True):
        if len(cells[step]) < shape.cells_per_grid:
            part = make_grid(replace(shape, height=len(step_rows), width=len(step_columns)), patch)
            of_step[step] = len(grids)
            # On smaller grids, too, states and sums have the memory layout of the complete grid.
            grids.append(part._replace(guard=grid.guard, stride=grid.stride, blocks=grid.blocks, marks=grid.marks))
        if step + 1 < shape.steps:
            # For each cell that the next step reads, the equal cell of this step.
            read = like[step][cells[step + 1]]
            spread[step] = not np.array_equal(read, np.arange(len(cells[step])))
            read = (samples * len(cells[step]) + read).ravel()
            copies[step, : len(read)] = np.argsort(read, kind="stable")
            copy_starts[step] = np.searchsorted(np.sort(read), np.arange(shape.cells + 1))
    return StepGrids(of_step, spread, _stacked(grids), copy_starts, copies), cells[0], like[0]


def _different(kinds: Array, periodic: bool, steps: int) -> list[tuple[Array, Array]]:
    """Return for each step the distinct rows (or columns), ascending, and for each row the index of the one it equals.

    Rows of the initial state are equal if their `kinds` are.
    """
    lines, everything = [], np.arange(len(kinds))
    for step in range(steps):
        around = _around(kinds, periodic)
        _, firsts, after = np.unique(around, axis=1, return_index=True, return_inverse=True)
        rows, like = np.sort(firsts), np.searchsorted(np.sort(firsts), firsts[after.ravel()])
        # These rows form a smaller grid only if each row has the same kinds of neighbours there as on the complete
        # grid.
        if step == steps - 1 or (_around(kinds[rows], periodic) != around[:, rows]).any():
            rows, like = everything, everything
        lines.append((rows, like))
        kinds = after.ravel()
    return lines


def _around(kinds: Array, periodic: bool) -> Array:
    """Return `[3, n]`: for each line, the kinds of the previous line, the line itself and the next line; -1 outside."""
    padded = np.pad(kinds, 1, mode="wrap") if periodic else np.pad(kinds, 1, constant_values=-1)
    return np.stack([padded[:-2], kinds, padded[2:]])


def _product(rows: tuple[Array, Array], columns: tuple[Array, Array], width: int) -> tuple[Array, Array]:
    """Return the cells in these rows and columns, and for each cell of the grid the index of the one it equals."""
    cells = rows[0][:, None] * width + columns[0]
    return cells.ravel(), (rows[1][:, None] * len(columns[0]) + columns[1]).ravel()


def _stacked(grids: Sequence[TileGrid]) -> Any:
    """Return the fields of grids stacked and padded with zeros, as in `StepGrids.grids`."""
    fields: list[Any] = []
    for values in zip(*grids, strict=True):
        arrays = [np.asarray(value) for value in values]
        sides = np.max([array.shape for array in arrays], axis=0).astype(int)
        pads = [[(0, most - side) for most, side in zip(sides, array.shape, strict=True)] for array in arrays]
        fields.append(np.stack([np.pad(array, pad) if pad else array for array, pad in zip(arrays, pads, strict=True)]))
    return TileGrid(*fields)


LOSS, DAMAGED = range(2)
"""Columns of `TileGrid.marks`."""


def make_marks(shape: Shape) -> Array:
    """Return each state's index among the states with a loss, and among those with damage; see `TileGrid.marks`."""
    marks = np.full((shape.steps + 1, 2), -1)
    marks[list(shape.judged_steps), LOSS] = np.arange(len(shape.judged_steps))
    marks[list(shape.damage_steps), DAMAGED] = np.arange(len(shape.damage_steps))
    return marks


def neighbours(shape: Shape) -> Array:
    """Return int64 `[9, cells]`: the cell at patch position `f = 3*dy + dx`, -1 if it is outside the grid."""
    cells = np.arange(shape.cells)
    row, column = cells // shape.width % shape.height, cells % shape.width
    # Neighbours belong to the same grid as the cell: `base` is the first cell of that grid.
    base = cells - row * shape.width - column
    near = np.empty((PATCH, shape.cells), dtype=np.int64)
    for f in range(PATCH):
        y, x = row + f // 3 - 1, column + f % 3 - 1
        inside = (y >= 0) & (y < shape.height) & (x >= 0) & (x < shape.width)
        there = base + y % shape.height * shape.width + x % shape.width
        near[f] = there if shape.periodic else np.where(inside, there, -1)
    return near


def aligned(*shape: int, dtype: npt.DTypeLike = np.float32) -> Array:
    """Return an array of zeros aligned to a cache line, since vectors that cross cache lines are slow."""
    count = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.zeros(count + LINE, dtype=np.uint8)
    start = -raw.ctypes.data % LINE
    return raw[start : start + count].view(dtype).reshape(shape)
