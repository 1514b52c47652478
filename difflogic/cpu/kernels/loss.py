"""Compute the loss of one tile, a sum of squared errors over the loss channels, and its adjoint."""

import numpy as np

from difflogic.core.bits import IGNORED
from difflogic.cpu.codegen.compiled import inlined
from difflogic.cpu.codegen.vectors import TILE, add, load, store
from difflogic.cpu.program import Program
from difflogic.cpu.tables import TileGrid
from difflogic.engine.shape import Array


@inlined
def loss(
    program: Program, grid: TileGrid, tile: int, values: Array, stride: int, guard: int, targets: Array, slots: Array
) -> float:
    """Return `sum (y - target)^2` over a tile, and add its adjoint to the slots of the outputs.

    Channel `c` of a cell is `values[c * stride + guard + cell]`; `targets` are `[loss_channels, tiles * TILE]`.
    """
    # Lanes past the last cell contain meaningless values, which have neither a loss nor an adjoint.
    lanes = min(TILE, grid.cells - tile * TILE)
    total = np.float64(0)
    for c in range(grid.loss_channels):
        for lane in range(lanes):
            cell = tile * TILE + lane
            target = targets[c, cell]
            # An ignored value is treated as correct: it has neither a loss nor an adjoint.
            difference = np.float32(0) if target == np.float32(IGNORED) else values[c * stride + guard + cell] - target
            # Added, since the slot may already contain the adjoint from the next step.
            slots[(program.output_slots + c) * TILE + lane] += np.float32(2) * difference
            total += difference * difference
    return total


@inlined
def join(program: Program, tile: int, adjoint: Array, width: int, slots: Array) -> None:
    """Add the caller's adjoint of a state, `[outputs * width]`, to the outputs' slots; lanes past the cells are 0."""
    for c in range(program.outputs):
        row = (program.output_slots + c) * TILE
        store(slots, row, add(load(slots, row), load(adjoint, c * width + tile * TILE)))
