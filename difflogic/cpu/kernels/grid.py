"""The 3x3 Moore patch of a tile's cells, and the adjoint of taking it."""

from __future__ import annotations

from difflogic.core.wiring import PATCH
from difflogic.cpu.codegen.compiled import inlined
from difflogic.cpu.codegen.vectors import TILE, add, load_shifted, store, zeros
from difflogic.cpu.tables import Grid
from difflogic.engine.shape import Array


@inlined
def write_patches(grid: Grid, tile: int, channels: int, state: Array, nodes: Array) -> None:
    """Rows `c*9 + f` of `nodes` from `state [C * stride]`."""
    stride = state.size // channels
    place = grid.guard + tile * TILE
    for f in range(PATCH):
        lanes = grid.lanes[f, tile]
        first, last = grid.wrapped_starts[f * grid.tiles + tile], grid.wrapped_starts[f * grid.tiles + tile + 1]
        for c in range(channels):
            row = (c * PATCH + f) * TILE
            store(nodes, row, load_shifted(state, c * stride + place + grid.shifts[f], lanes))
            # On a torus few lanes are wrapped, those at the border: they are mended one by one after the vector is
            # stored.
            for index in range(first, last):
                nodes[row + grid.wrapped[index, 0]] = state[c * stride + grid.guard + grid.wrapped[index, 1]]


@inlined
def gather_patches(grid: Grid, tile: int, channels: int, d_patches: Array, d_state: Array, first_row: int) -> None:
    """Rows of `d_state` from `first_row` on, one per channel, from `d_patches [9*C * stride]`.

    A cell is position `f` of the patch of its neighbour at the opposite position `8 - f`.
    """
    stride = d_patches.size // (channels * PATCH)
    place = grid.guard + tile * TILE
    for c in range(channels):
        row = (first_row + c) * TILE
        total = zeros()
        # Position f of a neighbour's patch is the cell itself when the neighbour lies at 8 - f from here: the cell to
        # the left has it at position 5, and lies at position 3. So a patch is gathered by the same shifts that wrote
        # it.
        for f in range(PATCH):
            there = (c * PATCH + f) * stride + place + grid.shifts[8 - f]
            total = add(total, load_shifted(d_patches, there, grid.lanes[8 - f, tile]))
        store(d_state, row, total)
        for f in range(PATCH):
            key = (8 - f) * grid.tiles + tile
            there = (c * PATCH + f) * stride + grid.guard
            for index in range(grid.wrapped_starts[key], grid.wrapped_starts[key + 1]):
                d_state[row + grid.wrapped[index, 0]] += d_patches[there + grid.wrapped[index, 1]]
