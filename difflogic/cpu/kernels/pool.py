"""The sample pool: a batch is taken from it, and its last states go back."""

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
    """Samples `first` to `last` of `state [C * stride]` from `pool [pool, H*W * C]`, where `places [B]` remember."""
    # Each sample draws from its own part of the pool, so that no place is drawn twice in a batch: of 16 places and a
    # batch of 4, sample 1 has places 4 to 7. A part is a power of two, which makes the draw a mask.
    part = len(pool) // grid.batch
    _, _, sub0, sub1 = split(control[DATA_KEY], control[DATA_KEY + 1])
    pool0, pool1 = threefry2x32(sub0, sub1, np.uint32(0), np.uint32(POOL_STREAM))
    _, _, key0, key1 = split(pool0, pool1)
    half = (grid.batch + 1) // 2
    for sample in range(first, last):
        # Words come in pairs that lie half a batch apart. Shares are of samples here, so that a block may be computed
        # twice: it costs less than a second order of samples would.
        low, high = pair_of_bits(key0, key1, sample % half, grid.batch)
        word = np.int64(low if sample < half else high)
        places[sample] = sample * part + (word & (part - 1))
        _copy(grid, channels, sample, pool[places[sample]], state)


@inlined
def _copy(grid: TileGrid, channels: int, sample: int, kept: Array, state: Array) -> None:
    begin = grid.guard + sample * grid.cells_per_grid
    for cell in range(grid.cells_per_grid):
        for channel in range(channels):
            state[channel * grid.stride + begin + cell] = np.float32(kept[cell * channels + channel])


@inlined
def rank(grid: TileGrid, channels: int, resets: int, state: Array, targets: Array, losses: Array, worst: Array) -> None:
    """`worst [B]`: whether a sample is among the `resets` of largest loss after the last step, the first of equals.

    `losses [B]` is scratch.
    """
    for sample in range(grid.batch):
        losses[sample] = 0
        # By one thread, cell after cell: the order of this sum decides which sample is replaced where two are equal.
        for cell in range(sample * grid.cells_per_grid, (sample + 1) * grid.cells_per_grid):
            for channel in range(grid.loss_channels):
                difference = state[channel * grid.stride + grid.guard + cell] - targets[channel, cell]
                losses[sample] += difference * difference
    # The rank of a sample is how many come before it: no sorting, and equals in the order of the batch.
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
    """The last states of samples `first` to `last`, rounded, to their places; for the worst their fresh start."""
    for sample in range(first, last):
        values = fresh if worst[sample] else state
        begin = grid.guard + sample * grid.cells_per_grid
        for cell in range(grid.cells_per_grid):
            for channel in range(channels):
                # Rounded to bits: a start is 0 or 1, and the pool a byte for each value, a quarter of what floats would
                # take.
                value = values[channel * grid.stride + begin + cell] > np.float32(0.5)
                pool[places[sample], cell * channels + channel] = value
