"""Arrays and settings of one soft rollout or training run, as compiled code reads them."""

from typing import NamedTuple

import numpy as np

from difflogic.cpu.kernels.adamw import Optimizer
from difflogic.cpu.kernels.faults import FaultBuffers
from difflogic.engine.events import Hardening
from difflogic.engine.shape import Array


class Buffers(NamedTuple):
    """All numbers of one training run but those of `Program` and `TileGrid`."""

    logits: Array
    """float32 `[16*P]`, as are the next four: gates, and behind them candidates."""
    mu: Array
    nu: Array
    probs: Array
    gradients: Array
    coefficients: Array
    """float32 `[4*G]`, as is the next."""
    moments: Array
    shares: Array
    """float32 `[16*(P - G)]`: the share of each candidate in its input, `[0]` if wiring is fixed."""
    table: Array
    """float32 `[4*16]`: see `coefficients`."""
    states: Array
    """float32 `[T + 1, C * stride]`; of a feed-forward circuit, as many rows as the wider of inputs and outputs."""
    targets: Array
    """float32 `[J, loss_channels, tiles * TILE]`, J as `Shape.targets`; where `given`, the last state's adjoint."""
    masks: Array
    """float32 `[T, tiles * TILE]`, or `[0, 0]` where every cell fires."""
    judged: Array
    """float32 `[J, loss_channels * tiles * TILE]`: what the losses before the last judge; where `given`,
    adjoints of these states."""
    corners: Array
    """int64 `[D, B, 2]`: row and column of the squares that are zeroed before step `damage_steps[D]`..."""
    kept: Array
    """float32 `[D, tiles * TILE]`: ...and 0 in them, else 1."""
    rule: Array
    """uint8 `[512]`, or `[0]` where the targets are given."""
    x: Array
    """uint8 `[N, H*W, C_in]`: what samples begin with, or `[0, 0, 0]`."""
    y: Array
    """int8 `[N, J, H*W, loss_channels]`: their targets, or `[0, 0, 0, 0]`."""
    same: Array
    """uint8 `[H*W * C]`: the one start, or `[0]`."""
    pool: Array
    """uint8 `[pool, H*W * C]`, or `[0, 0]` where every epoch starts afresh."""
    fresh: Array
    """float32 `[C * stride]`: fresh starts beside those from the pool, or `[0]`."""
    places: Array
    """int64 `[B]`: where in the pool the batch is from."""
    sample_losses: Array
    """float64 `[B]`: scratch."""
    worst: Array
    """bool `[B]`: which samples make room for fresh ones."""
    nodes: Array
    """float32 `[threads, N * TILE]`: scratch."""
    slots: Array
    """float32 `[threads, (slots + C) * TILE]`: scratch."""
    d_patches: Array
    """float32 `[2, 9*C * stride]`: two steps in turn."""
    d_state: Array
    """float32 `[C * tiles * TILE]`: the adjoint of a state that was spread out, or of the first one, or `[0]`."""
    partials: Array
    """float32 `[blocks, Program.wire_moments + 16*(P - G)]`: moments of gates, `4*G`, then of candidates."""
    losses: Array
    """float64 `[tiles]`."""
    squares: Array
    """float64 `[blocks]`: of a share of the gates, what `clip_norm` sums up, or `[0]` where entries are clipped."""
    finite: Array
    """bool `[blocks]`: of a share of the gates, whether every gradient is finite."""
    control: Array
    """uint32 `[8]`: see `difflogic.engine.control`."""
    given: bool
    """Whether adjoints are given, and no loss is computed."""
    fire_rate: np.float32
    start: int
    """One of the kinds of `seed_grid`."""
    damage_side: int
    pool_reset: int
    pool_stays: bool
    """Whether nothing is written back into the pool."""
    optimizer: Optimizer
    hardening: Hardening
    faults: FaultBuffers
