"""Copy the 3x3 patches of a tile's cells, and gather their adjoints."""

from difflogic.cpu.codegen.compiled import inlined
from difflogic.cpu.codegen.vectors import TILE, add, load_shifted, store, zeros
from difflogic.cpu.tables import TileGrid
from difflogic.engine.shape import Array


@inlined
def write_patches(grid: TileGrid, tile: int, channels: int, state: Array, nodes: Array) -> None:
    """Copy patches of `state [C * stride]` to rows of `nodes`: `c*9 + f` for position f, or c without perception."""
    patch, stride = grid.shifts.size, grid.stride
    place = grid.guard + tile * TILE
    for f in range(patch):
        lanes = grid.lanes[f, tile]
        first, last = grid.wrapped_starts[f * grid.tiles + tile], grid.wrapped_starts[f * grid.tiles + tile + 1]
        for c in range(channels):
            row = (c * patch + f) * TILE
            store(nodes, row, load_shifted(state, c * stride + place + grid.shifts[f], lanes))
            # On a torus, lanes at the border have other neighbours: they are few, and corrected one by one.
            for index in range(first, last):
                nodes[row + grid.wrapped[index, 0]] = state[c * stride + grid.guard + grid.wrapped[index, 1]]


@inlined
def gather_patches(
    grid: TileGrid, tile: int, channels: int, d_patches: Array, d_state: Array, first: int, step: int
) -> None:
    """Sum the adjoints in `d_patches [9*C * stride]` to a tile of `d_state`; channel c begins at `first + c * step`.

    A cell is at position `f` of the patch of its neighbour at the opposite position `8 - f`.
    """
    patch, stride = grid.shifts.size, grid.stride
    place = grid.guard + tile * TILE
    for c in range(channels):
        row = first + c * step
        total = zeros()
        # The cell is at position f in the patch of its neighbour at position 8 - f: for example, its left neighbour,
        # position 3, has the cell at position 5. So the shifts are the same as those of `write_patches`.
        for f in range(patch):
            opposite = patch - 1 - f
            source = (c * patch + f) * stride + place + grid.shifts[opposite]
            total = add(total, load_shifted(d_patches, source, grid.lanes[opposite, tile]))
        store(d_state, row, total)
        for f in range(patch):
            key = (patch - 1 - f) * grid.tiles + tile
            source = (c * patch + f) * stride + grid.guard
            for index in range(grid.wrapped_starts[key], grid.wrapped_starts[key + 1]):
                d_state[row + grid.wrapped[index, 0]] += d_patches[source + grid.wrapped[index, 1]]
