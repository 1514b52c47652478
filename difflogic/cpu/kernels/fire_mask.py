"""The mask says which cells take their new state in each step of an asynchronous rollout."""

import numpy as np

from difflogic.cpu.codegen.compiled import inlined
from difflogic.cpu.codegen.threefry import pair_of_bits, split
from difflogic.cpu.tables import TileGrid
from difflogic.engine.shape import Array


@inlined
def fire_mask(grid: TileGrid, part: int, parts: int, fire_rate: np.float32, key0: int, key1: int, masks: Array) -> None:
    """Every `parts`-th step of `masks [T, tiles * TILE]`, 0 and 1: each step `key, sub = split(key)`.

    A cell fires where `uniform(sub) <= fire_rate`; every grid of the batch has the same mask.
    """
    cells = grid.cells_per_grid
    half = (cells + 1) // 2
    for step in range(grid.steps):
        key0, key1, sub0, sub1 = split(key0, key1)
        # Keys form a chain, which every share goes through whole: two blocks of threefry a step are little beside a
        # mask.
        if step % parts != part:
            continue
        for index in range(half):
            low, high = pair_of_bits(sub0, sub1, index, cells)
            masks[step, index] = _fires(low, fire_rate)
            if half + index < cells:
                masks[step, half + index] = _fires(high, fire_rate)
        # The first grid's mask again and again: the authors draw one mask for the whole batch.
        for cell in range(cells, grid.cells):
            masks[step, cell] = masks[step, cell - cells]


@inlined
def _fires(word: int, fire_rate: np.float32) -> bool:
    """`uniform(word) <= fire_rate`: 23 bits as the mantissa of a number in [1, 2), minus 1."""
    return bool(np.float32(word >> np.uint32(9)) * np.float32(2.0**-23) <= fire_rate)
