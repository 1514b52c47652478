"""Make new initial states, sampled with the epoch's data subkey if they are random."""

import numpy as np

from difflogic.cpu.codegen.compiled import inlined
from difflogic.cpu.codegen.threefry import pair_of_bits, split
from difflogic.cpu.tables import TileGrid
from difflogic.engine import control as c
from difflogic.engine.shape import Array

DATA_KEY = c.DATA_KEY.start
RANDOM, BOARDS, SAME = range(3)
"""Kinds of initial states: random bits, random boards, or one grid for all samples and epochs."""


@inlined
def seed_grid(
    grid: TileGrid, kind: int, channels: int, part: int, parts: int, control: Array, same: Array, state: Array
) -> None:
    """Write share `part` of `parts` of the initial states `state [C * stride]`; kind SAME copies `same [H*W * C]`."""
    # This kind needs no key. `commit` advances the keys, so that the chain is the same for all kinds.
    if kind == SAME:
        for cell in range(grid.cells * part // parts, grid.cells * (part + 1) // parts):
            for channel in range(channels):
                value = same[cell % grid.cells_per_grid * channels + channel]
                state[state.size // channels * channel + grid.guard + cell] = np.float32(value)
        return
    _, _, sub0, sub1 = split(control[DATA_KEY], control[DATA_KEY + 1])
    _, _, key0, key1 = split(sub0, sub1)
    count = grid.cells * channels if kind == RANDOM else grid.batch
    half = (count + 1) // 2
    # A block of threefry gives words for two values half of all values apart. Items divide the blocks, so that none is
    # computed twice.
    for index in range(half * part // parts, half * (part + 1) // parts):
        low, high = pair_of_bits(key0, key1, index, count)
        _put(grid, kind, channels, index, low, state)
        if half + index < count:
            _put(grid, kind, channels, half + index, high, state)


@inlined
def _put(grid: TileGrid, kind: int, channels: int, index: int, word: int, state: Array) -> None:
    """Write `word` as value `index` of the batch, in the order of `[B, H, W, C]`, or as the bits of board `index`."""
    if kind == RANDOM:
        state[index % channels * grid.stride + grid.guard + index // channels] = np.float32(word & np.uint32(1))
        return
    last = grid.cells_per_grid - 1
    for cell in range(grid.cells_per_grid):
        # Board 5 of 3x3 cells is 000000101, row by row: the first cell is the most significant bit.
        bit = word >> np.uint32(last - cell) & np.uint32(1)
        state[grid.guard + index * grid.cells_per_grid + cell] = np.float32(bit)
