"""Damage: zero squares of cells during a rollout, and their adjoints in the backward pass."""

import numpy as np

from difflogic.cpu.codegen.compiled import inlined
from difflogic.cpu.codegen.threefry import threefry2x32, word_of_bits
from difflogic.cpu.codegen.vectors import load, store, where, zeros
from difflogic.cpu.tables import TileGrid
from difflogic.engine.events import DAMAGE_STREAM
from difflogic.engine.shape import Array


@inlined
def draw_corners(grid: TileGrid, index: int, key0: int, key1: int, corners: Array) -> None:
    """Sample the corners of damage step number `index`, `corners[index] [B, 2]`, with the epoch's training subkey."""
    key0, key1 = threefry2x32(key0, key1, np.uint32(0), np.uint32(DAMAGE_STREAM))
    for sample in range(grid.batch):
        for side in range(2):
            number = 2 * (index * grid.batch + sample) + side
            # The high word of the product, which is uniform up to an error of cells / 2^32, needs no division.
            word = np.uint64(word_of_bits(key0, key1, number, corners.size))
            cells = np.uint64(grid.width if side else grid.height)
            corners[index, sample, side] = np.int64(word * cells >> np.uint64(32))


@inlined
def write_undamaged(grid: TileGrid, index: int, side: int, corners: Array, undamaged: Array) -> None:
    """Write the mask `undamaged[index] [tiles * TILE]`: 0 if a cell is zeroed, otherwise 1."""
    # Computed once per epoch, so that the forward and the backward pass apply a mask instead of looking up squares.
    for cell in range(grid.cells):
        sample, place = divmod(cell, grid.cells_per_grid)
        row = place // grid.width - corners[index, sample, 0]
        column = place % grid.width - corners[index, sample, 1]
        inside = row >= 0 and row < side and column >= 0 and column < side
        undamaged[index, cell] = np.float32(0 if inside else 1)


@inlined
def zero_squares(rows: Array, first: int, count: int, stride: int, undamaged: Array, place: int) -> None:
    """Zero cells that are 0 in `undamaged[place:]`, in `count` rows of a tile; row i begins at `first + i*stride`."""
    mask = load(undamaged, place)
    for row in range(first, first + count * stride, stride):
        store(rows, row, where(mask, load(rows, row), zeros()))
