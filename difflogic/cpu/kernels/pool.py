"""Sample pool: take a batch from it, and write the last states of the batch back."""

import numpy as np

from difflogic.cpu.codegen.compiled import inlined
from difflogic.cpu.codegen.threefry import pair_of_bits, split, threefry2x32
from difflogic.cpu.tables import TileGrid
from difflogic.engine import control as c
from difflogic.engine.events import POOL_STREAM
from difflogic.engine.shape import Array

DATA_KEY = c.DATA_KEY.start


@inlined
def draw_pool(
    grid: TileGrid, channels: int, first: int, last: int, control: Array, pool: Array, places: Array, state: Array
) -> None:
    """Sample `first` to `last` of the batch: copy grids of `pool [pool, H*W * C]` to `state [C * stride]`.

    Their indices in the pool are stored in `places [B]`.
    """
    # Each sample has its own part of the pool, so that a batch contains no grid twice: with 16 grids and a batch of 4,
    # sample 1 takes one of grids 4 to 7. The size of a part is a power of two, so that a bit mask selects one.
    part = len(pool) // grid.batch
    _, _, sub0, sub1 = split(control[DATA_KEY], control[DATA_KEY + 1])
    pool0, pool1 = threefry2x32(sub0, sub1, np.uint32(0), np.uint32(POOL_STREAM))
    _, _, key0, key1 = split(pool0, pool1)
    half = (grid.batch + 1) // 2
    for sample in range(first, last):
        # The two words of a block belong to samples half a batch apart, so that a block may be computed twice: that
        # costs little.
        low, high = pair_of_bits(key0, key1, sample % half, grid.batch)
        word = np.int64(low if sample < half else high)
        places[sample] = sample * part + (word & (part - 1))
        _copy(grid, channels, sample, pool[places[sample]], state)


@inlined
def _copy(grid: TileGrid, channels: int, sample: int, values: Array, state: Array) -> None:
    begin = grid.guard + sample * grid.cells_per_grid
    for cell in range(grid.cells_per_grid):
        for channel in range(channels):
            state[channel * grid.stride + begin + cell] = np.float32(values[cell * channels + channel])


@inlined
def rank(grid: TileGrid, channels: int, resets: int, state: Array, targets: Array, losses: Array, worst: Array) -> None:
    """Mark in `worst [B]` the `resets` samples with the largest loss after the last step; `losses [B]` is scratch."""
    for sample in range(grid.batch):
        losses[sample] = 0
        # In one thread and in the order of cells, since rounding may decide which of two samples is replaced.
        for cell in range(sample * grid.cells_per_grid, (sample + 1) * grid.cells_per_grid):
            for channel in range(grid.loss_channels):
                difference = state[channel * grid.stride + grid.guard + cell] - targets[channel, cell]
                losses[sample] += difference * difference
    # The rank of a sample is the number of samples before it; equal losses are in the order of the batch.
    for sample in range(grid.batch):
        ahead = 0
        for other in range(grid.batch):
            larger = losses[other] > losses[sample]
            ahead += larger or (losses[other] == losses[sample] and other < sample)
        worst[sample] = ahead < resets


@inlined
def write_back(
    grid: TileGrid,
    channels: int,
    first: int,
    last: int,
    state: Array,
    fresh: Array,
    worst: Array,
    places: Array,
    pool: Array,
) -> None:
    """Write the rounded last states of samples `first` to `last` into the pool; for the worst, new initial states."""
    for sample in range(first, last):
        values = fresh if worst[sample] else state
        begin = grid.guard + sample * grid.cells_per_grid
        for cell in range(grid.cells_per_grid):
            for channel in range(channels):
                # Rounded, since initial states are bits; the pool stores a byte per value.
                value = values[channel * grid.stride + begin + cell] > np.float32(0.5)
                pool[places[sample], cell * channels + channel] = value
