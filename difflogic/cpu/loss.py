"""The loss, a sum of squares over the loss channels, and its adjoint, on one tile."""

from __future__ import annotations

import numpy as np

from difflogic.cpu.compiled import inner
from difflogic.cpu.program import Program
from difflogic.cpu.tables import Array, Grid
from difflogic.cpu.vectors import TILE


@inner
def loss(program: Program, grid: Grid, tile: int, state: Array, targets: Array, slots: Array) -> float:
    """`sum (y - target)^2` over the tile; `targets [loss_channels, tiles * TILE]`.

    The outputs' slots become its adjoint; 0 in lanes past the last cell.
    """
    stride = state.size // program.channels
    lanes = min(TILE, grid.cells - tile * TILE)
    total = np.float64(0)
    slots[program.outputs * TILE : (program.outputs + program.channels) * TILE] = 0
    for c in range(grid.loss_channels):
        for lane in range(lanes):
            cell = tile * TILE + lane
            difference = state[c * stride + grid.guard + cell] - targets[c, cell]
            slots[(program.outputs + c) * TILE + lane] = np.float32(2) * difference
            total += difference * difference
    return total
