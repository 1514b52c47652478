"""The 3x3 Moore patch of a tile's cells, and the adjoint of taking it."""

from difflogic.cpu.codegen.compiled import inlined
from difflogic.cpu.codegen.vectors import TILE, add, load_shifted, store, zeros
from difflogic.cpu.tables import TileGrid
from difflogic.engine.shape import Array


@inlined
def write_patches(grid: TileGrid, tile: int, channels: int, state: Array, nodes: Array) -> None:
    """Rows `c*9 + f` of `nodes` from `state [C * stride]`; `c` where a cell sees only itself."""
    patch, stride = grid.shifts.size, grid.stride
    place = grid.guard + tile * TILE
    for f in range(patch):
        lanes = grid.lanes[f, tile]
        first, last = grid.wrapped_starts[f * grid.tiles + tile], grid.wrapped_starts[f * grid.tiles + tile + 1]
        for c in range(channels):
            row = (c * patch + f) * TILE
            store(nodes, row, load_shifted(state, c * stride + place + grid.shifts[f], lanes))
            # On a torus few lanes are wrapped, those at the border: they are mended one by one after the vector is
            # stored.
            for index in range(first, last):
                nodes[row + grid.wrapped[index, 0]] = state[c * stride + grid.guard + grid.wrapped[index, 1]]


@inlined
def gather_patches(
    grid: TileGrid, tile: int, channels: int, d_patches: Array, d_state: Array, first: int, step: int
) -> None:
    """The tile's part of `d_state`, `first` on and a `step` on for each channel, from `d_patches [9*C * stride]`.

    A cell is position `f` of the patch of its neighbour at the opposite position `8 - f`.
    """
    patch, stride = grid.shifts.size, grid.stride
    place = grid.guard + tile * TILE
    for c in range(channels):
        row = first + c * step
        total = zeros()
        # Position f of a neighbour's patch is the cell itself when the neighbour lies at 8 - f from here: the cell to
        # the left has it at position 5, and lies at position 3. So a patch is gathered by the same shifts that wrote
        # it.
        for f in range(patch):
            opposite = patch - 1 - f
            there = (c * patch + f) * stride + place + grid.shifts[opposite]
            total = add(total, load_shifted(d_patches, there, grid.lanes[opposite, tile]))
        store(d_state, row, total)
        for f in range(patch):
            key = (patch - 1 - f) * grid.tiles + tile
            there = (c * patch + f) * stride + grid.guard
            for index in range(grid.wrapped_starts[key], grid.wrapped_starts[key + 1]):
                d_state[row + grid.wrapped[index, 0]] += d_patches[there + grid.wrapped[index, 1]]
