"""Sample pool: sample a batch from the pool, and write the last states of the batch back into it."""

import numpy as np

from difflogic.core.bits import IGNORED
from difflogic.cpu.codegen.compiled import inlined
from difflogic.cpu.codegen.threefry import split, threefry2x32, word_of_bits
from difflogic.cpu.kernels.buffers import Buffers
from difflogic.cpu.tables import TileGrid
from difflogic.engine import control as c
from difflogic.engine.events import POOL_STREAM

DATA_KEY = c.DATA_KEY.start


@inlined
def draw_pool(grid: TileGrid, channels: int, first: int, last: int, buffers: Buffers) -> None:
    """Sample elements `first` to `last` of the batch: copy pool grids to the initial states; store their indices."""
    # Each sample has its own part of the pool, so that a batch contains no grid twice: with 16 grids and a batch of 4,
    # sample 1 takes one of grids 4 to 7. The size of a part is a power of two, so that a bit mask selects one.
    part = len(buffers.pool) // grid.batch
    _, _, sub0, sub1 = split(buffers.control[DATA_KEY], buffers.control[DATA_KEY + 1])
    pool0, pool1 = threefry2x32(sub0, sub1, np.uint32(0), np.uint32(POOL_STREAM))
    _, _, key0, key1 = split(pool0, pool1)
    for sample in range(first, last):
        word = np.int64(word_of_bits(key0, key1, sample, grid.batch))
        buffers.places[sample] = sample * part + (word & (part - 1))
        values, begin = buffers.pool[buffers.places[sample]], grid.guard + sample * grid.cells_per_grid
        for cell in range(grid.cells_per_grid):
            for channel in range(channels):
                value = np.float32(values[cell * channels + channel])
                buffers.states[0][channel * grid.stride + begin + cell] = value


@inlined
def rank(grid: TileGrid, buffers: Buffers) -> None:
    """Mark in `worst` the `pool_reset` samples with the largest loss after the last step."""
    losses, state = buffers.sample_losses, buffers.states[grid.steps]
    targets = buffers.targets[len(buffers.targets) - 1]  # of the last step
    for sample in range(grid.batch):
        losses[sample] = 0
        # In one thread and in the order of cells, since rounding may decide which of two samples is replaced.
        for cell in range(sample * grid.cells_per_grid, (sample + 1) * grid.cells_per_grid):
            for channel in range(grid.loss_channels):
                target = targets[channel, cell]
                if target != np.float32(IGNORED):
                    difference = state[channel * grid.stride + grid.guard + cell] - target
                    losses[sample] += difference * difference
    # The rank of a sample is the number of samples before it; equal losses are in the order of the batch.
    for sample in range(grid.batch):
        ahead = 0
        for other in range(grid.batch):
            larger = losses[other] > losses[sample]
            ahead += larger or (losses[other] == losses[sample] and other < sample)
        buffers.worst[sample] = ahead < buffers.pool_reset


@inlined
def write_back(grid: TileGrid, channels: int, first: int, last: int, buffers: Buffers) -> None:
    """Write the rounded last states (for the worst, new initial states) of samples `first` to `last` into the pool."""
    for sample in range(first, last):
        values = buffers.fresh if buffers.worst[sample] else buffers.states[grid.steps]
        begin = grid.guard + sample * grid.cells_per_grid
        for cell in range(grid.cells_per_grid):
            for channel in range(channels):
                # Rounded, since initial states are bits; the pool stores a byte per value.
                value = values[channel * grid.stride + begin + cell] > np.float32(0.5)
                buffers.pool[buffers.places[sample], cell * channels + channel] = value
