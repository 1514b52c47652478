"""A batch of samples: what its grids begin with, and their targets."""

import numpy as np

from difflogic.core.bits import IGNORED
from difflogic.cpu.codegen.compiled import inlined
from difflogic.cpu.codegen.threefry import pair_of_bits, split, threefry2x32
from difflogic.cpu.tables import TileGrid
from difflogic.engine import control as c
from difflogic.engine.events import DATA_STREAM
from difflogic.engine.shape import Array

DATA_KEY = c.DATA_KEY.start


@inlined
def draw_samples(
    grid: TileGrid, first: int, last: int, control: Array, x: Array, y: Array, state: Array, targets: Array
) -> None:
    """Draw samples `first` to `last`: the first channels of `state [C * stride]`, from `x [N, H*W, C_in]`.

    And `targets [J, loss_channels, tiles * TILE]`, from the codes `y [N, J, H*W, loss_channels]`.
    """
    _, _, sub0, sub1 = split(control[DATA_KEY], control[DATA_KEY + 1])
    key0, key1 = threefry2x32(sub0, sub1, np.uint32(0), np.uint32(DATA_STREAM))
    half = (grid.batch + 1) // 2
    for sample in range(first, last):
        low, high = pair_of_bits(key0, key1, sample % half, grid.batch)
        word = np.uint64(low if sample < half else high)
        # The high half of a product, as for corners: 2^31 of 10 samples is sample 5. A remainder would favour the
        # first.
        drawn = np.int64(word * np.uint64(len(x)) >> np.uint64(32))
        begin = sample * grid.cells_per_grid
        for cell in range(grid.cells_per_grid):
            for channel in range(x.shape[2]):
                state[channel * grid.stride + grid.guard + begin + cell] = np.float32(x[drawn, cell, channel])
            for place in range(len(targets)):
                for channel in range(grid.loss_channels):
                    code = y[drawn, place, cell, channel]
                    # What does not count is marked in the target itself, so that the loss needs no second array to look
                    # at.
                    targets[place, channel, begin + cell] = np.float32(code if code >= 0 else IGNORED)
