"""The loss, a sum of squares over the loss channels, and its adjoint, on one tile."""

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
    """`sum (y - target)^2` over the tile; channel `c` of a cell is `values[c * stride + guard + cell]`.

    `targets [loss_channels, tiles * TILE]`. Its adjoint is added to the outputs' slots, but for lanes past the last
    cell.
    """
    # Lanes past the last cell hold whatever gates make of zeros: they must neither count nor send anything back.
    lanes = min(TILE, grid.cells - tile * TILE)
    total = np.float64(0)
    for c in range(grid.loss_channels):
        for lane in range(lanes):
            cell = tile * TILE + lane
            wanted = targets[c, cell]
            # A value that does not count is as if it were right: nothing is added, and nothing sent back.
            difference = np.float32(0) if wanted == np.float32(IGNORED) else values[c * stride + guard + cell] - wanted
            # Added, not set: outputs that are judged may be read by the next step as well, whose adjoint is there
            # already.
            slots[(program.output_slots + c) * TILE + lane] += np.float32(2) * difference
            total += difference * difference
    return total


@inlined
def join(program: Program, tile: int, adjoint: Array, width: int, slots: Array) -> None:
    """A given adjoint `[outputs * width]` of a state in place of a loss's; it is 0 in lanes past the last cell."""
    for c in range(program.outputs):
        row = (program.output_slots + c) * TILE
        store(slots, row, add(load(slots, row), load(adjoint, c * width + tile * TILE)))
