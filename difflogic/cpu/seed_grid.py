"""Fresh start grids: fair bits in the order of `[B, H, W, C]`, from the epoch's data subkey."""

from __future__ import annotations

import numpy as np

from difflogic import control as c
from difflogic.cpu.compiled import inner
from difflogic.cpu.tables import Array, Grid
from difflogic.cpu.threefry import pair_of_bits, split

DATA_KEY = c.DATA_KEY.start


@inner
def seed_grid(grid: Grid, channels: int, part: int, parts: int, control: Array, state: Array) -> None:
    """The `part`-th of `parts` shares of `state [C * stride]`."""
    _, _, sub0, sub1 = split(control[DATA_KEY], control[DATA_KEY + 1])
    _, _, key0, key1 = split(sub0, sub1)
    count = grid.cells * channels
    half = (count + 1) // 2
    for index in range(half * part // parts, half * (part + 1) // parts):
        low, high = pair_of_bits(key0, key1, index, count)
        _put(grid, channels, index, low, state)
        if half + index < count:
            _put(grid, channels, half + index, high, state)


@inner
def _put(grid: Grid, channels: int, index: int, word: int, state: Array) -> None:
    stride = state.size // channels
    state[index % channels * stride + grid.guard + index // channels] = np.float32(word & np.uint32(1))
