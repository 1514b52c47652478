"""A whole train step, or the parts of it that a call wants, by any number of threads.

The work is a list of *phases*, in each of which every block of tiles (or share of the gates) is one item:

    prepare | forward step 0 .. T-1 | backward step T-1 .. 0 | gradients | commit | adamw

`phases` makes such lists. Items are numbered through, over phases and epochs, and a thread takes the next number
by one atomic addition. It waits until all items of earlier phases are done; nothing else is ever waited for, neither a
thread that starts late nor one that the system holds up between items. An item writes the same places in the
same order whoever takes it, so that results do not depend on threads.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from difflogic import control as c
from difflogic.cpu.adamw import Optimizer, adamw
from difflogic.cpu.atomics import fetch_add, wait_for
from difflogic.cpu.coefficients import KINDS, coefficients
from difflogic.cpu.commit import commit
from difflogic.cpu.compiled import inner, piece
from difflogic.cpu.damage import draw_corners, write_kept
from difflogic.cpu.denormals import flush_denormals, restore
from difflogic.cpu.fire_mask import fire_mask
from difflogic.cpu.gate_backward import gate_backward
from difflogic.cpu.gate_forward import gate_forward, leave
from difflogic.cpu.gradients import gradients
from difflogic.cpu.harden import growing_share, harden
from difflogic.cpu.phases import BACKWARD, COMMIT, DAMAGE, DRAW, FORWARD, GRADIENTS, TARGET
from difflogic.cpu.pool import draw_pool, rank, write_back
from difflogic.cpu.program import Program
from difflogic.cpu.rule_target import rule_target
from difflogic.cpu.seed_grid import seed_grid
from difflogic.cpu.tables import Array, Grid
from difflogic.cpu.threefry import split
from difflogic.hardening import Hardening

TAKEN, DONE = 0, 8
"""Places of the two counters, on cache lines of their own."""
TRAIN_KEY = c.TRAIN_KEY.start


class Buffers(NamedTuple):
    """All numbers of one training run but those of `Program` and `Grid`."""

    logits: Array
    """float32 `[16*G]`, as are the next four."""
    mu: Array
    nu: Array
    probs: Array
    gradients: Array
    coefficients: Array
    """float32 `[4*G]`, as is the next."""
    moments: Array
    table: Array
    """float32 `[4*16]`: see `coefficients`."""
    states: Array
    """float32 `[T + 1, C * stride]`."""
    targets: Array
    """float32 `[loss_channels, tiles * TILE]`."""
    masks: Array
    """float32 `[T, tiles * TILE]`, or `[0, 0]` where every cell fires."""
    judged: Array
    """float32 `[J, loss_channels * tiles * TILE]`: what the losses before the last judge."""
    corners: Array
    """int64 `[D, B, 2]`: row and column of the squares that are zeroed before step `damage_steps[D]`..."""
    kept: Array
    """float32 `[D, tiles * TILE]`: ...and 0 in them, else 1."""
    rule: Array
    """uint8 `[512]`, or `[0]` where the targets are given."""
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
    partials: Array
    """float32 `[blocks, 4*G]`: moments."""
    losses: Array
    """float64 `[tiles]`."""
    finite: Array
    """bool `[blocks]`: of a share of the gates, whether every gradient is finite."""
    control: Array
    """uint32 `[8]`: see `difflogic.control`."""
    fire_rate: np.float32
    start: int
    """One of the kinds of `seed_grid`."""
    damage_side: int
    pool_reset: int
    optimizer: Optimizer
    hardening: Hardening


@piece
def run(
    thread: int, phases: Array, program: Program, grid: Grid, buffers: Buffers, history: Array, counters: Array
) -> None:
    """One thread's part of `phases [n, 2]`, kind and CA step, `len(history)` times; each leaves `(loss, skipped)`."""
    before = flush_denormals()
    _work(thread, phases, program, grid, buffers, history, counters)
    restore(before)


@inner
def _work(
    thread: int, phases: Array, program: Program, grid: Grid, buffers: Buffers, history: Array, counters: Array
) -> None:
    items, each = grid.blocks, len(phases)
    total = len(history) * each * items
    while True:
        ticket = fetch_add(counters, TAKEN, 1)
        if ticket >= total:
            return
        round_, item = ticket // items, ticket % items
        wait_for(counters, DONE, round_ * items)
        kind, at = phases[round_ % each, 0], phases[round_ % each, 1]
        _item(thread, kind, at, item, program, grid, buffers, history[round_ // each])
        fetch_add(counters, DONE, 1)


@inner
def _item(
    thread: int, kind: int, at: int, item: int, program: Program, grid: Grid, buffers: Buffers, row: Array
) -> None:
    first, last = _share(grid.tiles, item, grid.blocks)
    if kind == FORWARD:
        for tile in range(first, last):
            gate_forward(
                program, grid, at, tile, buffers.coefficients, buffers.masks, buffers.states, buffers.nodes[thread]
            )
            leave(program, grid, at + 1, tile, buffers.states, buffers.judged, buffers.kept)
    elif kind == BACKWARD:
        if at == grid.steps - 1:  # with which the pass begins
            buffers.partials[item] = 0
        for tile in range(first, last):
            gate_backward(
                program,
                grid,
                at,
                tile,
                buffers.coefficients,
                buffers.masks,
                buffers.states,
                buffers.targets,
                buffers.judged,
                buffers.kept,
                buffers.nodes[thread],
                buffers.slots[thread],
                buffers.d_patches,
                buffers.partials[item],
                buffers.losses,
            )
    elif kind < FORWARD:
        _prepare(thread, kind, item, program, grid, buffers)
    else:
        _update(kind, item, program, grid, buffers, row)


@inner
def _prepare(thread: int, kind: int, item: int, program: Program, grid: Grid, buffers: Buffers) -> None:
    if kind == TARGET:
        nodes = buffers.nodes[thread]
        for tile in range(*_share(grid.tiles, item, grid.blocks)):
            rule_target(grid, tile, program.channels, buffers.rule, buffers.states[0], nodes, buffers.targets)
    elif kind == DAMAGE:
        for tile in range(*_share(grid.tiles, item, grid.blocks)):
            leave(program, grid, 0, tile, buffers.states, buffers.judged, buffers.kept)
    else:
        first, last = _share(buffers.logits.size // KINDS, item, grid.blocks)
        coefficients(first, last, buffers.table, buffers.logits, buffers.probs, buffers.coefficients)
        if kind == DRAW:
            _draw(item, program, grid, buffers)


@inner
def _draw(item: int, program: Program, grid: Grid, buffers: Buffers) -> None:
    """This epoch's hardened gates, start grids, fire masks and damage."""
    control, channels, start = buffers.control, program.channels, buffers.states[0]
    if buffers.pool.size:
        first, last = _share(grid.batch, item, grid.blocks)
        draw_pool(grid, channels, first, last, control, buffers.pool, buffers.places, start)
        start = buffers.fresh
    seed_grid(grid, buffers.start, channels, item, grid.blocks, control, buffers.same, start)
    _, _, key0, key1 = split(control[TRAIN_KEY], control[TRAIN_KEY + 1])
    if buffers.hardening.peak:
        gates = buffers.logits.size // KINDS
        first, last = _share(gates, item, grid.blocks)
        share = growing_share(buffers.hardening, control[c.EPOCH])
        harden(first, last, gates, share, key0, key1, buffers.table, buffers.logits, buffers.coefficients)
    if buffers.masks.size:
        fire_mask(grid, item, grid.blocks, buffers.fire_rate, key0, key1, buffers.masks)
    for index in range(item, len(buffers.kept), grid.blocks):
        draw_corners(grid, index, key0, key1, buffers.corners)
        write_kept(grid, index, buffers.damage_side, buffers.corners, buffers.kept)


@inner
def _update(kind: int, item: int, program: Program, grid: Grid, buffers: Buffers, row: Array) -> None:
    first, last = _share(buffers.logits.size // KINDS, item, grid.blocks)
    if kind == GRADIENTS:
        buffers.finite[item] = gradients(
            first, last, buffers.table, buffers.partials, buffers.probs, buffers.moments, buffers.gradients
        )
    elif kind == COMMIT:
        if item == 0:
            row[0] = commit(buffers.losses, buffers.finite, buffers.control)
            row[1] = buffers.control[c.NONFINITE]
            if buffers.pool.size:
                _rank(program, grid, buffers)
    elif not buffers.control[c.NONFINITE]:
        control = buffers.control
        adamw(first, last, buffers.optimizer, control, buffers.gradients, buffers.logits, buffers.mu, buffers.nu)
        if buffers.pool.size:
            _write_back(item, program, grid, buffers)


@inner
def _rank(program: Program, grid: Grid, buffers: Buffers) -> None:
    last = buffers.states[grid.steps]
    rank(grid, program.channels, buffers.pool_reset, last, buffers.targets, buffers.sample_losses, buffers.worst)


@inner
def _write_back(item: int, program: Program, grid: Grid, buffers: Buffers) -> None:
    first, end = _share(grid.batch, item, grid.blocks)
    last, fresh = buffers.states[grid.steps], buffers.fresh
    write_back(grid, program.channels, first, end, last, fresh, buffers.worst, buffers.places, buffers.pool)


@inner
def _share(count: int, item: int, items: int) -> Any:
    return count * item // items, count * (item + 1) // items
