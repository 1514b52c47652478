"""Arrays and settings of a soft rollout or a training run, in the layout that compiled code reads."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from difflogic.cpu.kernels.faults import FaultBuffers
from difflogic.engine.events import Hardening
from difflogic.engine.shape import Array, Hyper


class Optimizer(NamedTuple):
    """Hyperparameters as in `difflogic.engine.shape.Hyper`, with all real numbers as float32."""

    lr: np.float32
    weight_decay: np.float32
    beta1: np.float32
    beta2: np.float32
    epsilon: np.float32
    clip: np.float32
    lr_end: np.float32
    lr_from: int
    lr_to: int
    input_wise: bool

    @classmethod
    def of(cls, hyper: Hyper) -> Optimizer:
        reals = (hyper.lr, hyper.weight_decay, hyper.beta1, hyper.beta2, hyper.epsilon, hyper.clip, hyper.lr_end)
        lr, weight_decay, beta1, beta2, epsilon, clip, lr_end = (np.float32(number) for number in reals)
        return cls(lr, weight_decay, beta1, beta2, epsilon, clip, lr_end, hyper.lr_from, hyper.lr_to, hyper.input_wise)


class Buffers(NamedTuple):
    """Arrays and settings of a training run, except those of `Program` and `TileGrid`."""

    logits: Array
    """float32 `[16*P]`, like the next four arrays: first the rows of the gates, then those of the candidates."""
    mu: Array
    nu: Array
    probs: Array
    gradients: Array
    coefficients: Array
    """float32 `[4*G]`, like the moments: four coefficients per gate."""
    moments: Array
    shares: Array
    """float32 `[16*(P - G)]`: softmax share of each candidate in its input, or `[0]` if wiring is fixed."""
    table: Array
    """float32 `[4*16]`: transposed TABLE, see `coefficients`."""
    states: Array
    """float32 `[T + 1, C * stride]`; in a feed-forward circuit C is the larger of the numbers of inputs and outputs."""
    targets: Array
    """float32 `[J, loss_channels, tiles * TILE]`, J is `Shape.targets`; if `has_adjoints`, the last state's adjoint."""
    masks: Array
    """float32 `[T, tiles * TILE]`: fire masks, or `[0, 0]` if every cell fires."""
    loss_states: Array
    """float32 `[J - 1, loss_channels * tiles * TILE]`: the states that all losses but the last compare, before damage;
    if `has_adjoints`, the adjoints of these states."""
    corners: Array
    """int64 `[D, B, 2]`: row and column of the first cell of each square that is zeroed before a step."""
    undamaged: Array
    """float32 `[D, tiles * TILE]`: 0 in the squares of `corners`, otherwise 1."""
    rule: Array
    """uint8 `[512]`: truth table of the rule to learn, or `[0]` without a rule."""
    x: Array
    """uint8 `[N, H*W, C_in]`: inputs of the data samples, or `[0, 0, 0]`."""
    y: Array
    """int8 `[N, J, H*W, loss_channels]`: targets of the data samples, or `[0, 0, 0, 0]`."""
    same: Array
    """uint8 `[H*W * C]`: the initial state that all samples and epochs share, or `[0]`."""
    pool: Array
    """uint8 `[pool, H*W * C]`: grids of the sample pool, or `[0, 0]` without one."""
    fresh: Array
    """float32 `[C * stride]`: new initial states, which replace the worst samples of the pool, or `[0]`."""
    places: Array
    """int64 `[B]`: index in the pool of each sample of the batch."""
    sample_losses: Array
    """float64 `[B]`: scratch for the loss of each sample."""
    worst: Array
    """bool `[B]`: True for samples of the batch that are replaced in the pool by new initial states."""
    nodes: Array
    """float32 `[threads, N * TILE]`: scratch for the values of nodes."""
    slots: Array
    """float32 `[threads, (slots + C) * TILE]`: scratch for the adjoints of nodes."""
    d_patches: Array
    """float32 `[2, 9*C * stride]`: adjoints of the patches, double-buffered by step."""
    d_state: Array
    """float32 `[C * tiles * TILE]`: adjoint of a spread state (see `StepGrids`) or of the initial one, or `[0]`."""
    partials: Array
    """float32 `[blocks, Program.wire_moments + 16*(P - G)]`: moments per block, of the gates, then of candidates."""
    losses: Array
    """float64 `[tiles]`: loss of each tile."""
    squares: Array
    """float64 `[blocks]`: partial sums for `clip_norm`, or `[0]` if gradients are clipped by element."""
    finite: Array
    """bool `[blocks]`: True if all gradients of the block's share of the gates are finite."""
    control: Array
    """uint32 `[8]`: see `difflogic.engine.control`."""
    has_adjoints: bool
    """True if the caller sets adjoints of the states, and no loss is computed."""
    fire_rate: np.float32
    start: int
    """Kind of initial states: RANDOM, BOARDS or SAME of `seed_grid`."""
    damage_side: int
    pool_reset: int
    pool_stays: bool
    """True if the last states of a batch are not written back into the pool."""
    optimizer: Optimizer
    hardening: Hardening
    faults: FaultBuffers
