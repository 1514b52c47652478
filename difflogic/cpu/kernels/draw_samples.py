"""Sample a batch from a data set: inputs for the initial states, and targets."""

import numpy as np

from difflogic.core.bits import IGNORED
from difflogic.cpu.codegen.compiled import inlined
from difflogic.cpu.codegen.threefry import split, threefry2x32, word_of_bits
from difflogic.cpu.tables import TileGrid
from difflogic.engine import control as c
from difflogic.engine.events import DATA_STREAM
from difflogic.engine.shape import Array

DATA_KEY = c.DATA_KEY.start


@inlined
def draw_samples(
    grid: TileGrid, first: int, last: int, control: Array, x: Array, y: Array, state: Array, targets: Array
) -> None:
    """Sample the elements `first` to `last` of the batch: copy inputs and targets from the data set.

    The inputs `x [N, H*W, C_in]` are copied to the first channels of `state [C * stride]`, the codes
    `y [N, J, H*W, loss_channels]` to `targets [J, loss_channels, tiles * TILE]`.
    """
    _, _, sub0, sub1 = split(control[DATA_KEY], control[DATA_KEY + 1])
    key0, key1 = threefry2x32(sub0, sub1, np.uint32(0), np.uint32(DATA_STREAM))
    for sample in range(first, last):
        word = np.uint64(word_of_bits(key0, key1, sample, grid.batch))
        # The high word of a product, as for corners: with 10 samples, the word 2^31 selects sample 5.
        number = np.int64(word * np.uint64(len(x)) >> np.uint64(32))
        begin = sample * grid.cells_per_grid
        for cell in range(grid.cells_per_grid):
            for channel in range(x.shape[2]):
                state[channel * grid.stride + grid.guard + begin + cell] = np.float32(x[number, cell, channel])
            for place in range(len(targets)):
                for channel in range(grid.loss_channels):
                    code = y[number, place, cell, channel]
                    # The target itself marks values that do not count, so that the loss needs no second array.
                    targets[place, channel, begin + cell] = np.float32(code if code >= 0 else IGNORED)
