"""Compute the target of a task that learns a rule: the rule applied to the initial state."""

import numpy as np

from difflogic.core.wiring import PATCH
from difflogic.cpu.codegen.compiled import inlined
from difflogic.cpu.codegen.vectors import TILE
from difflogic.cpu.kernels.grid import write_patches
from difflogic.cpu.tables import TileGrid
from difflogic.engine.shape import Array


@inlined
def rule_target(
    grid: TileGrid, tile: int, channels: int, rule: Array, state: Array, nodes: Array, targets: Array
) -> None:
    """Compute a tile of `targets [1, tiles * TILE]`: `rule [512]` applied once to channel 0 of `state [C * stride]`."""
    write_patches(grid, tile, channels, state, nodes)
    for lane in range(TILE):
        # The index of the entry is the patch as a number, its first cell the most significant bit.
        entry = 0
        for f in range(PATCH):
            entry = 2 * entry + (nodes[f * TILE + lane] > np.float32(0.5))
        targets[0, tile * TILE + lane] = np.float32(rule[entry])
