"""Faults: flipped bits, stuck cells and stuck gates, and their adjoints in the backward pass."""

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
    """Rates, random key and listed cells of the faults of a rollout."""

    rates: FaultRates
    key: Array
    """uint32 `[2]`: random key of the faults, the epoch's training subkey."""
    listed: Array
    """uint8 `[H*W]`: 1 for a cell stuck at 0 in every sample, 2 for one stuck at 1, or 0; `[0]` without faults."""


@inlined
def change_bits(
    faults: FaultBuffers,
    grid: TileGrid,
    step: int,
    tile: int,
    rows: Array,
    first: int,
    channels: int,
    stride: int,
    adjoint: bool,
) -> None:
    """Apply the faults before a step to `channels` rows of a tile; the row of channel c begins at `first + c * stride`.

    The rows are a state or, if `adjoint`, its adjoint: a flip changes the sign of the adjoint, a stuck cell makes it 0.
    """
    rates, zero = faults.rates, np.uint32(0)
    flip0, flip1 = threefry2x32(faults.key[0], faults.key[1], zero, np.uint32(FLIP_STREAM))
    # Lanes past the last cell are skipped.
    for lane in range(min(TILE, grid.cells - tile * TILE)):
        cell = tile * TILE + lane
        stuck = _stuck(faults, grid, cell)
        for channel in range(channels):
            place = first + channel * stride + lane
            # Flips do not affect a stuck cell.
            if stuck > 0:
                rows[place] = np.float32(0 if adjoint else stuck - 1)
            elif rates.flip > 0:
                # Each bit has its own counters: nothing is stored, and the backward pass samples the same words again.
                word, _ = threefry2x32(flip0, flip1, np.uint32(cell * channels + channel), np.uint32(step))
                if np.int64(word) < rates.flip:
                    # The flip is y = 1 - x, and so the adjoint changes its sign, since dy/dx = -1.
                    rows[place] = -rows[place] if adjoint else np.float32(1) - rows[place]


@inlined
def _stuck(faults: FaultBuffers, grid: TileGrid, cell: int) -> Any:
    """Return 0 for a cell that works, 1 if it is stuck at 0, 2 if it is stuck at 1."""
    listed = np.int64(faults.listed[cell % grid.cells_per_grid])
    if listed > 0 or faults.rates.stuck == 0:
        return listed
    key0, key1 = faults.key[0], faults.key[1]
    return _sample(faults.rates, key0, key1, STUCK_STREAM, cell, faults.rates.stuck)


@inlined
def _sample(rates: FaultRates, key0: int, key1: int, stream: int, index: int, below: int) -> Any:
    """Sample whether a cell or gate is stuck, as `FaultRates._draw` does: return 0 if not, 1 if at 0, 2 if at 1."""
    key0, key1 = threefry2x32(key0, key1, np.uint32(0), np.uint32(stream))
    word, value = threefry2x32(key0, key1, np.uint32(index), np.uint32(0))
    # One block of threefry decides both: its first word whether the item is stuck, its second at which value.
    stuck_at = np.int64(value & np.uint32(1)) if rates.value == EITHER else np.int64(rates.value)
    return 1 + stuck_at if np.int64(word) < below else np.int64(0)


@inlined
def stick_gates(
    rates: FaultRates, first: int, last: int, key0: int, key1: int, probs: Array, coefficients: Array
) -> None:
    """Make the stuck gates among `first` to `last` constant: change `coefficients [4*G]`, and zero `probs [16*G]`."""
    for gate in range(first, last):
        stuck = _sample(rates, key0, key1, GATE_STREAM, gate, rates.gates)
        if stuck > 0:
            # The gradients of logits are products with these probabilities, and thus become 0.
            probs[gate * GATE_COUNT : (gate + 1) * GATE_COUNT] = 0
            # Only c0 is not 0: the gate is constant, and passes no adjoint to its inputs.
            coefficients[4 * gate : 4 * gate + 4] = 0
            coefficients[4 * gate] = np.float32(stuck - 1)
