"""A whole train step, or the parts of it that a call wants, by any number of threads.

The work is a list of *phases*, in each of which every tile (or share of the gates) is one item:

    prepare | forward step 0 .. T-1 | backward step T-1 .. 0 | gradients | commit | adamw

Items are numbered through, over phases and epochs, and a thread takes the next number by one atomic
addition. It waits until all items of earlier phases are done; nothing else is ever waited for, neither a
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
from difflogic.cpu.denormals import flush_denormals, restore
from difflogic.cpu.fire_mask import fire_mask
from difflogic.cpu.gate_backward import gate_backward
from difflogic.cpu.gate_forward import gate_forward
from difflogic.cpu.gradients import gradients
from difflogic.cpu.program import Program
from difflogic.cpu.seed_grid import seed_grid
from difflogic.cpu.tables import Array, Grid
from difflogic.cpu.threefry import split

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
    nodes: Array
    """float32 `[threads, N * TILE]`: scratch."""
    slots: Array
    """float32 `[threads, (slots + C) * TILE]`: scratch."""
    d_patches: Array
    """float32 `[2, 9*C * stride]`: two steps in turn."""
    partials: Array
    """float32 `[tiles, 4*G]`: moments."""
    losses: Array
    """float64 `[tiles]`."""
    finite: Array
    """bool `[tiles]`: of a share of the gates, whether every gradient is finite."""
    control: Array
    """uint32 `[8]`: see `difflogic.control`."""
    fire_rate: np.float32
    optimizer: Optimizer


def phases(steps: int) -> int:
    """How many there are in a train step."""
    return 2 * steps + 4


@piece
def run(
    thread: int,
    first: int,
    last: int,
    drawn: bool,
    program: Program,
    grid: Grid,
    buffers: Buffers,
    history: Array,
    counters: Array,
) -> None:
    """One thread's part of phases `first` to `last` of `len(history)` epochs, each of which leaves `(loss, skipped)`.

    `drawn`: start grids and fire masks come from the keys; else they are as given.
    """
    before = flush_denormals()
    _work(thread, first, last, drawn, program, grid, buffers, history, counters)
    restore(before)


@inner
def _work(
    thread: int,
    first: int,
    last: int,
    drawn: bool,
    program: Program,
    grid: Grid,
    buffers: Buffers,
    history: Array,
    counters: Array,
) -> None:
    items = grid.tiles
    total = len(history) * (last - first) * items
    while True:
        ticket = fetch_add(counters, TAKEN, 1)
        if ticket >= total:
            return
        round_, item = ticket // items, ticket % items
        wait_for(counters, DONE, round_ * items)
        epoch, phase = round_ // (last - first), first + round_ % (last - first)
        _item(thread, phase, item, drawn, program, grid, buffers, history[epoch])
        fetch_add(counters, DONE, 1)


@inner
def _item(
    thread: int, phase: int, item: int, drawn: bool, program: Program, grid: Grid, buffers: Buffers, row: Array
) -> None:
    steps = grid.steps
    if phase == 0:
        _prepare(item, drawn, program, grid, buffers)
    elif phase <= steps:
        gate_forward(
            program, grid, phase - 1, item, buffers.coefficients, buffers.masks, buffers.states, buffers.nodes[thread]
        )
    elif phase <= 2 * steps:
        gate_backward(
            program,
            grid,
            2 * steps - phase,
            item,
            buffers.coefficients,
            buffers.masks,
            buffers.states,
            buffers.targets,
            buffers.nodes[thread],
            buffers.slots[thread],
            buffers.d_patches,
            buffers.partials,
            buffers.losses,
        )
    else:
        _update(phase - 2 * steps, item, grid, buffers, row)


@inner
def _prepare(item: int, drawn: bool, program: Program, grid: Grid, buffers: Buffers) -> None:
    first, last = _share(buffers.logits.size // KINDS, item, grid.tiles)
    coefficients(first, last, buffers.table, buffers.logits, buffers.probs, buffers.coefficients)
    if not drawn:
        return
    seed_grid(grid, program.channels, item, grid.tiles, buffers.control, buffers.states[0])
    if buffers.masks.size:
        _, _, key0, key1 = split(buffers.control[TRAIN_KEY], buffers.control[TRAIN_KEY + 1])
        fire_mask(grid, item, grid.tiles, buffers.fire_rate, key0, key1, buffers.masks)


@inner
def _update(phase: int, item: int, grid: Grid, buffers: Buffers, row: Array) -> None:
    first, last = _share(buffers.logits.size // KINDS, item, grid.tiles)
    if phase == 1:
        buffers.finite[item] = gradients(
            first, last, buffers.table, buffers.partials, buffers.probs, buffers.moments, buffers.gradients
        )
    elif phase == 2:
        if item == 0:
            row[0] = commit(buffers.losses, buffers.finite, buffers.control)
            row[1] = buffers.control[c.NONFINITE]
    elif not buffers.control[c.NONFINITE]:
        step = buffers.control[c.STEP]
        adamw(first, last, buffers.optimizer, step, buffers.gradients, buffers.logits, buffers.mu, buffers.nu)


@inner
def _share(count: int, item: int, items: int) -> Any:
    return count * item // items, count * (item + 1) // items
