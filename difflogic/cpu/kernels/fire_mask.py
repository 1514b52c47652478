"""Sample the fire masks of an asynchronous rollout: the cells that take their new state in each step."""

import numpy as np

from difflogic.cpu.codegen.compiled import inlined
from difflogic.cpu.codegen.threefry import pair_of_bits, split
from difflogic.cpu.tables import TileGrid
from difflogic.engine.shape import Array


@inlined
def fire_mask(grid: TileGrid, part: int, parts: int, fire_rate: np.float32, key0: int, key1: int, masks: Array) -> None:
    """Sample steps `part`, `part + parts`, ... of `masks [T, tiles * TILE]`, 0 or 1.

    In each step `key, sub = split(key)`, and a cell fires if `uniform(sub) <= fire_rate`; all grids share the mask.
    """
    cells = grid.cells_per_grid
    half = (cells + 1) // 2
    for step in range(grid.steps):
        key0, key1, sub0, sub1 = split(key0, key1)
        # Keys form a chain, which every item computes completely: two blocks of threefry per step are little work.
        if step % parts != part:
            continue
        for index in range(half):
            low, high = pair_of_bits(sub0, sub1, index, cells)
            masks[step, index] = _fires(low, fire_rate)
            if half + index < cells:
                masks[step, half + index] = _fires(high, fire_rate)
        # Copies of the first grid's mask: the authors of the paper sample one mask for the complete batch.
        for cell in range(cells, grid.cells):
            masks[step, cell] = masks[step, cell - cells]


@inlined
def _fires(word: int, fire_rate: np.float32) -> bool:
    """Return `uniform(word) <= fire_rate`, where `uniform` is the word's upper 23 bits as a fraction in [0, 1)."""
    return bool(np.float32(word >> np.uint32(9)) * np.float32(2.0**-23) <= fire_rate)
