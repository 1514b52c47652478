"""A batch of grids as compiled code reads it: made once, in NumPy.

Compiled functions take these tuples field by field, so a field's type must never change: int64 numbers,
C-contiguous arrays of the types named here.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from difflogic.core.gates import TABLE
from difflogic.core.wiring import PATCH
from difflogic.cpu.codegen.vectors import LINE, TILE
from difflogic.engine.shape import Array, Shape

MAX_BLOCKS = 64
"""More moments would not stay in a processor's cache, where every CA step adds to all of them."""


class TileGrid(NamedTuple):
    """One batch of grids. A row of cells has a guard before it, so that shifted reads stay inside."""

    # An example: one torus of 3x3 cells, which is one tile with 23 lanes to spare.
    #
    #     0 1 2    Position f = 3*dy + dx of a patch lies `shifts[f]` cells on: -4 -3 -2, -1 0 1, 2 3 4. For cell 4 that
    #     3 4 5    is right everywhere. For cell 3 it is wrong at f 0, 3 and 6: one cell back is 2, the end of the row
    #     6 7 8    before, and its neighbour to the left is 5.
    #
    # So a tile is read at its shift, in one instruction, and `lanes[f]` says in which lanes that was right: of f 0 in
    # 4, 5, 7 and 8, the bits of 0b110110000. The other lanes get 0, which is what lies outside a grid without a torus.
    # On a torus `wrapped` mends them one by one: of f 0 it holds (0, 8), (1, 6), (2, 7), (3, 2), (6, 5), a lane and
    # the cell that is its neighbour. These are few: a grid's border, not its area.

    batch: int
    height: int
    width: int
    cells_per_grid: int
    cells: int
    tiles: int
    blocks: int
    """Of consecutive tiles, whose moments are one sum: as many as tiles where these are few."""
    steps: int
    loss_channels: int
    guard: int
    stride: int
    """Elements of a row of cells, an odd number of cache lines: rows must not compete for the same ones."""
    shifts: Array
    """int64 `[9]`, `[1]` where a cell sees itself alone: its neighbour at position `f` is `shifts[f]` cells on..."""
    lanes: Array
    """uint64 `[9, tiles]`: ...where the lane's bit is 1. Elsewhere it is outside the grid, or one of these:"""
    wrapped_starts: Array
    """int64 `[9 * tiles + 1]`: the wrapped lanes of `f` in a tile are `[f * tiles + tile]` to the next."""
    wrapped: Array
    """int64 `[., 2]`: a lane, and the cell that is its neighbour."""
    marks: Array
    """int64 `[T + 1, 2]`: of a state that is judged or damaged, the place in its list, else -1."""


def make_grid(shape: Shape, patch: int = PATCH) -> TileGrid:
    """The tables of a batch of grids whose cells see so many cells, themselves included."""
    # Tiles are cut out of all cells of the batch, and may hold the end of one grid and the beginning of the next.
    tiles = -(-shape.cells // TILE)
    near, shifts, guard = np.arange(shape.cells)[None], np.zeros(1), 0
    if patch > 1:
        near = neighbours(shape)
        shifts = np.array([(f // 3 - 1) * shape.width + f % 3 - 1 for f in range(PATCH)])
        # The farthest shift is a row and a cell; a guard of whole cache lines keeps tiles at their beginnings.
        guard = -(-(shape.width + 1) * 4 // LINE) * LINE // 4
    lines = -(-(2 * guard + tiles * TILE) * 4 // LINE)
    # A neighbour in the next grid of the batch is `shifts[f]` on as well, but not the one that `near` names.
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
    """The grids that steps are done on where cells are alike whatever the circuit is: each of them is there once."""

    # An example: a torus of 6x6 zeros, but for one cell in row 3. What step 0 makes of it differs in rows 2, 3 and 4,
    # and in row 0, which all others are like. So step 0 is done on rows 0, 2, 3 and 4, a torus of its own: before row 2
    # lies row 0 there, which is as row 1 is. Step 1 differs in all rows but one, and is done on all six. It reads what
    # step 0 made of row 0 in rows 0, 1 and 5: the state is spread out. Columns are treated likewise. Backward, the
    # adjoint of a cell of step 0 is the sum over the cells that it was spread to.

    of_step: Array
    """int64 `[T]`: a step's place in `grids`, or -1: it is done on the whole grid..."""
    spread: Array
    """bool `[T]`: ...and whether what it makes is spread out."""
    grids: Any
    """TileGrid, of which every field has an axis more, and is padded to the largest."""
    copy_starts: Array
    """int64 `[T, cells + 1]`: a cell of step t is read as the cells `[t, cell]` to the next of `copies`."""
    copies: Array
    """int64 `[T, cells]`."""


def step_grids(grid: TileGrid, shape: Shape, patch: int, start: Array | None) -> tuple[StepGrids, Array, Array]:
    """The grids of rollouts from `start [H, W, C]`, whose last state alone must be whole; without one, all are.

    With them, int64: the cells `[n]` of the start that step 0 reads, and `[H*W]` which of these each cell is like.
    """
    of_step, spread = np.full(shape.steps, -1), np.zeros(shape.steps, dtype=np.bool_)
    if start is None:
        nowhere, everywhere = np.zeros((0, 0), dtype=np.int64), np.arange(shape.cells_per_grid)
        return StepGrids(of_step, spread, _stacked([grid]), nowhere, nowhere), everywhere, everywhere
    kinds = [np.unique(lines, axis=0, return_inverse=True)[1].ravel() for lines in (start, start.swapaxes(0, 1))]
    rows, columns = (_different(each, shape.periodic, shape.steps) for each in kinds)
    near = zip(rows, columns, strict=True)
    cells, like = zip(*(_product(*each, shape.width) for each in near), strict=True)
    grids = [grid]
    copy_starts = np.zeros((shape.steps, shape.cells + 1), dtype=np.int64)
    copies = np.zeros((shape.steps, shape.cells), dtype=np.int64)
    samples = np.arange(shape.batch)[:, None]
    for at, (here, _), (across, _) in zip(range(shape.steps), rows, columns, strict=True):
        if len(cells[at]) < shape.cells_per_grid:
            part = make_grid(replace(shape, height=len(here), width=len(across)), patch)
            of_step[at] = len(grids)
            # Places of states and of sums are those of the whole grid, whatever a step is done on.
            grids.append(part._replace(guard=grid.guard, stride=grid.stride, blocks=grid.blocks, marks=grid.marks))
        if at + 1 < shape.steps:
            # Of each cell that the next step reads, which of this step's it is.
            read = like[at][cells[at + 1]]
            spread[at] = not np.array_equal(read, np.arange(len(cells[at])))
            read = (samples * len(cells[at]) + read).ravel()
            copies[at, : len(read)] = np.argsort(read, kind="stable")
            copy_starts[at] = np.searchsorted(np.sort(read), np.arange(shape.cells + 1))
    return StepGrids(of_step, spread, _stacked(grids), copy_starts, copies), cells[0], like[0]


def _different(kinds: Array, periodic: bool, steps: int) -> list[tuple[Array, Array]]:
    """Of rows (or columns) of these kinds the different ones that each step makes, ascending; which each is like."""
    found, everything = [], np.arange(len(kinds))
    for at in range(steps):
        around = _around(kinds, periodic)
        _, firsts, after = np.unique(around, axis=1, return_index=True, return_inverse=True)
        rows, like = np.sort(firsts), np.searchsorted(np.sort(firsts), firsts[after.ravel()])
        # They are a grid of their own if each has neighbours there of the kinds that its neighbours have.
        if at == steps - 1 or (_around(kinds[rows], periodic) != around[:, rows]).any():
            rows, like = everything, everything
        found.append((rows, like))
        kinds = after.ravel()
    return found


def _around(kinds: Array, periodic: bool) -> Array:
    """`[3, n]`: the kind before each, its own and that after it; outside, -1."""
    padded = np.pad(kinds, 1, mode="wrap") if periodic else np.pad(kinds, 1, constant_values=-1)
    return np.stack([padded[:-2], kinds, padded[2:]])


def _product(rows: tuple[Array, Array], columns: tuple[Array, Array], width: int) -> tuple[Array, Array]:
    """The cells in these rows and columns, and which of them each cell of the grid is like."""
    cells = rows[0][:, None] * width + columns[0]
    return cells.ravel(), (rows[1][:, None] * len(columns[0]) + columns[1]).ravel()


def _stacked(grids: Sequence[TileGrid]) -> Any:
    """Grids side by side, their arrays padded with zeros: see `StepGrids.grids`."""
    fields: list[Any] = []
    for values in zip(*grids, strict=True):
        arrays = [np.asarray(value) for value in values]
        sides = np.max([each.shape for each in arrays], axis=0).astype(int)
        pads = [[(0, most - side) for most, side in zip(sides, each.shape, strict=True)] for each in arrays]
        fields.append(np.stack([np.pad(each, pad) if pad else each for each, pad in zip(arrays, pads, strict=True)]))
    return TileGrid(*fields)


JUDGED, DAMAGED = range(2)
"""Columns of `marks`."""


def make_marks(shape: Shape) -> Array:
    """Return which states are judged and damaged: see `TileGrid.marks`."""
    marks = np.full((shape.steps + 1, 2), -1)
    marks[list(shape.judged_steps), JUDGED] = np.arange(len(shape.judged_steps))
    marks[list(shape.damage_steps), DAMAGED] = np.arange(len(shape.damage_steps))
    return marks


def neighbours(shape: Shape) -> Array:
    """int64 `[9, cells]`: the cell at patch position `f = 3*dy + dx`, -1 where it is outside the grid."""
    cells = np.arange(shape.cells)
    row, column = cells // shape.width % shape.height, cells % shape.width
    # A neighbour is looked for in the cell's own grid: `base` is that grid's first cell.
    base = cells - row * shape.width - column
    near = np.empty((PATCH, shape.cells), dtype=np.int64)
    for f in range(PATCH):
        y, x = row + f // 3 - 1, column + f % 3 - 1
        inside = (y >= 0) & (y < shape.height) & (x >= 0) & (x < shape.width)
        there = base + y % shape.height * shape.width + x % shape.width
        near[f] = there if shape.periodic else np.where(inside, there, -1)
    return near


def aligned(*shape: int, dtype: npt.DTypeLike = np.float32) -> Array:
    """Zeros that begin at a cache line: a vector that straddles two is slow."""
    count = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.zeros(count + LINE, dtype=np.uint8)
    start = -raw.ctypes.data % LINE
    return raw[start : start + count].view(dtype).reshape(shape)


def transposed_table() -> Array:
    """float32 `[4*16]`: TABLE, coefficient by coefficient, as the kernels load it: sixteen gates side by side."""
    table: Array = np.ascontiguousarray(TABLE.T, dtype=np.float32).reshape(-1)
    return table
