"""Bits that flip, and cells and gates that are stuck; and their adjoints."""

from typing import Any, NamedTuple

import numpy as np

from difflogic.core.gates import GATE_COUNT
from difflogic.cpu.codegen.compiled import inlined
from difflogic.cpu.codegen.threefry import threefry2x32
from difflogic.cpu.codegen.vectors import TILE
from difflogic.cpu.tables import TileGrid
from difflogic.engine.events import EITHER, FLIP_STREAM, GATE_STREAM, STUCK_STREAM, FaultRates
from difflogic.engine.shape import Array


class FaultBuffers(NamedTuple):
    """The faults of a rollout."""

    rates: FaultRates
    key: Array
    """uint32 `[2]`, what they are drawn from: the epoch's training subkey."""
    listed: Array
    """uint8 `[H*W]`: 1 for a cell that is stuck at 0 in every sample, 2 at 1; or `[0]` where states have no faults."""


@inlined
def change_bits(
    faults: FaultBuffers,
    grid: TileGrid,
    at: int,
    tile: int,
    rows: Array,
    first: int,
    channels: int,
    stride: int,
    adjoint: bool,
) -> None:
    """The faults before step `at` in a tile's part of `channels` rows, the first at `first` and each `stride` on.

    `adjoint`: not of a state but of its adjoint, whose sign a flip changes, and which ends at a cell that is stuck.
    """
    rates, zero = faults.rates, np.uint32(0)
    flip0, flip1 = threefry2x32(faults.key[0], faults.key[1], zero, np.uint32(FLIP_STREAM))
    # Lanes past the last cell are left out: they hold no cell, and their counters would be those of none.
    for lane in range(min(TILE, grid.cells - tile * TILE)):
        cell = tile * TILE + lane
        stuck = _stuck(faults, grid, cell)
        for channel in range(channels):
            place = first + channel * stride + lane
            # A cell that is stuck stays so, whatever is flipped: its channels draw no word.
            if stuck > 0:
                rows[place] = np.float32(0 if adjoint else stuck - 1)
            elif rates.flip > 0:
                # A word for each bit by its own counters: nothing is kept, and the backward pass draws the same again.
                word, _ = threefry2x32(flip0, flip1, np.uint32(cell * channels + channel), np.uint32(at))
                if np.int64(word) < rates.flip:
                    # y = 1 - x: the same flip, and backward the sign alone, since dy/dx = -1.
                    rows[place] = -rows[place] if adjoint else np.float32(1) - rows[place]


@inlined
def _stuck(faults: FaultBuffers, grid: TileGrid, cell: int) -> Any:
    """0 for a cell that works, 1 for one that is stuck at 0, 2 at 1."""
    listed = np.int64(faults.listed[cell % grid.cells_per_grid])
    if listed > 0 or faults.rates.stuck == 0:
        return listed
    key0, key1 = faults.key[0], faults.key[1]
    return _drawn(faults.rates, key0, key1, STUCK_STREAM, cell, faults.rates.stuck)


@inlined
def _drawn(rates: FaultRates, key0: int, key1: int, stream: int, index: int, below: int) -> Any:
    """Draw as `FaultRates._draw` does, for one value."""
    key0, key1 = threefry2x32(key0, key1, np.uint32(0), np.uint32(stream))
    word, value = threefry2x32(key0, key1, np.uint32(index), np.uint32(0))
    # One block of threefry answers both questions: its first word whether it is stuck, its second at what.
    stuck_at = np.int64(value & np.uint32(1)) if rates.value == EITHER else np.int64(rates.value)
    return 1 + stuck_at if np.int64(word) < below else np.int64(0)


@inlined
def stick_gates(
    rates: FaultRates, first: int, last: int, key0: int, key1: int, probs: Array, coefficients: Array
) -> None:
    """Gates `first` to `last` that are stuck: a constant in `coefficients [4*G]`, no gradient by `probs [16*G]`."""
    for gate in range(first, last):
        stuck = _drawn(rates, key0, key1, GATE_STREAM, gate, rates.gates)
        if stuck > 0:
            # Gradients of logits are products with these.
            probs[gate * GATE_COUNT : (gate + 1) * GATE_COUNT] = 0
            # c0 alone is left: the gate gives a constant, and sends nothing back to what it reads.
            coefficients[4 * gate : 4 * gate + 4] = 0
            coefficients[4 * gate] = np.float32(stuck - 1)
