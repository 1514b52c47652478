"""Run a complete train step, or parts of one, in any number of threads.

The work is a list of *phases*, in each of which every block of tiles (or share of the gates) is one item:

    prepare | forward step 0 .. T-1 | backward step T-1 .. 0 | gradients | commit | adamw

`phases` makes such lists. Items are numbered across phases and epochs, and a thread takes the next number as soon as
all items of earlier phases are done (`atomics.take`). That is the only synchronisation: no thread waits for one that
starts late or is preempted between items. An item writes to the same addresses in the same order in every thread, so
results do not depend on the threads.

Example: a rollout of two steps on four blocks has the phases prepare, forward 0 and forward 1, and so items 0 to 11.
Of two threads one takes item 0, the other item 1, and the first to finish takes item 2. Item 4, the first block of
forward 0, is available when `DONE` reaches 4. A thread that asks before that waits without having taken an item; if it
is preempted then, the other thread does the rest. With several epochs the list begins again at item 12, whose phase is
`12 // 4 % 3`, the first.
"""

from typing import Any

from difflogic.core.gates import GATE_COUNT
from difflogic.cpu.codegen.atomics import DONE, fetch_add, take
from difflogic.cpu.codegen.compiled import entry_point, inlined
from difflogic.cpu.codegen.denormals import flush_denormals, restore
from difflogic.cpu.codegen.threefry import split
from difflogic.cpu.codegen.vectors import TILE
from difflogic.cpu.kernels.adamw import adamw
from difflogic.cpu.kernels.buffers import Buffers
from difflogic.cpu.kernels.candidates import candidate_gradients, candidate_shares
from difflogic.cpu.kernels.clip_norm import shorten, squares
from difflogic.cpu.kernels.coefficients import coefficients
from difflogic.cpu.kernels.commit import commit
from difflogic.cpu.kernels.damage import draw_corners, write_undamaged
from difflogic.cpu.kernels.draw_samples import draw_samples
from difflogic.cpu.kernels.faults import stick_gates
from difflogic.cpu.kernels.fire_mask import fire_mask
from difflogic.cpu.kernels.gate_backward import gate_backward
from difflogic.cpu.kernels.gate_forward import finish_state, gate_forward
from difflogic.cpu.kernels.gradients import gradients
from difflogic.cpu.kernels.grid import gather_patches
from difflogic.cpu.kernels.harden import growing_share, harden
from difflogic.cpu.kernels.pool import draw_pool, rank, write_back
from difflogic.cpu.kernels.rule_target import rule_target
from difflogic.cpu.kernels.seed_grid import seed_grid
from difflogic.cpu.phases import BACKWARD, COMMIT, D_STATE, DAMAGE, DRAW, FORWARD, GRADIENTS, TARGET
from difflogic.cpu.program import Program
from difflogic.cpu.tables import StepGrids, TileGrid
from difflogic.engine import control as c
from difflogic.engine.shape import Array

TRAIN_KEY = c.TRAIN_KEY.start


@entry_point
def run(
    thread: int, phases: Array, program: Program, steps: StepGrids, buffers: Buffers, history: Array, counters: Array
) -> None:
    """Execute this thread's part of `phases [n, 2]`, kind and CA step, in each epoch of `history`.

    An epoch writes `(loss, skipped)` to `history`, float32 `[epochs, 2]`. `counters` are those of `atomics.take`.
    """
    before = flush_denormals()  # restored at the end: the thread may be the caller's
    _work(thread, phases, program, steps, buffers, history, counters)
    restore(before)


@inlined
def _work(
    thread: int, phases: Array, program: Program, steps: StepGrids, buffers: Buffers, history: Array, counters: Array
) -> None:
    # One call runs many epochs: nothing between two epochs, or two steps, needs Python.
    items, count = steps.grids.blocks[0], len(phases)
    total = len(history) * count * items
    while True:
        # A ticket encodes the number of a phase and an item of it, so that one counter orders the work of all epochs.
        ticket = take(counters, items, total)
        if ticket >= total:
            break
        number, item = ticket // items, ticket % items
        kind, step = phases[number % count, 0], phases[number % count, 1]
        _item(thread, kind, step, item, program, steps, buffers, history[number // count])
        fetch_add(counters, DONE, 1)


@inlined
def _on_step(steps: StepGrids, step: int) -> TileGrid:
    """Return the grid on which step number `step` is computed."""
    place, grids = steps.of_step[step], steps.grids
    return TileGrid(
        grids.batch[place],
        grids.height[place],
        grids.width[place],
        grids.cells_per_grid[place],
        grids.cells[place],
        grids.tiles[place],
        grids.blocks[place],
        grids.steps[place],
        grids.loss_channels[place],
        grids.guard[place],
        grids.stride[place],
        grids.shifts[place],
        grids.lanes[place],
        grids.wrapped_starts[place],
        grids.wrapped[place],
        grids.marks[place],
    )


@inlined
def _item(
    thread: int, kind: int, step: int, item: int, program: Program, steps: StepGrids, buffers: Buffers, metrics: Array
) -> None:
    grid = _on_step(steps, step)
    # Blocks, not threads, own tiles and sums: any number of threads adds the same numbers in the same order.
    first, last = _share(grid.tiles, item, grid.blocks)
    if kind == FORWARD:
        for tile in range(first, last):
            gate_forward(thread, step, tile, program, grid, steps, buffers)
            finish_state(program, grid, step + 1, tile, buffers)
    elif kind == BACKWARD:
        if step == grid.steps - 1:  # the first step of the backward pass
            # Only this item writes the moments of its block in a phase, so that they are summed in the order of tiles.
            buffers.partials[item] = 0
        for tile in range(first, last):
            gate_backward(thread, step, tile, program, grid, steps, buffers, item)
    elif kind == D_STATE:
        width, d_patches = buffers.d_state.size // program.channels, buffers.d_patches[step % 2]
        for tile in range(first, last):
            gather_patches(grid, tile, program.channels, d_patches, buffers.d_state, tile * TILE, width)
    elif kind < FORWARD:
        _prepare(thread, kind, item, program, grid, buffers)
    else:
        _update(kind, item, program, grid, buffers, metrics)


@inlined
def _prepare(thread: int, kind: int, item: int, program: Program, grid: TileGrid, buffers: Buffers) -> None:
    if kind == TARGET:
        if len(buffers.x):
            first, last = _share(grid.batch, item, grid.blocks)
            # After DRAW has filled the grids: a data sample overwrites its channels; the others stay as sampled.
            draw_samples(grid, first, last, buffers.control, buffers.x, buffers.y, buffers.states[0], buffers.targets)
            return
        nodes = buffers.nodes[thread]
        for tile in range(*_share(grid.tiles, item, grid.blocks)):
            rule_target(grid, tile, program.channels, buffers.rule, buffers.states[0], nodes, buffers.targets[0])
    elif kind == DAMAGE:
        for tile in range(*_share(grid.tiles, item, grid.blocks)):
            finish_state(program, grid, 0, tile, buffers)
    else:
        # The gates are divided among as many items as there are blocks of tiles; some items may get none.
        first, last, first_row, last_row = _gates(program, item, grid.blocks)
        coefficients(first, last, buffers.table, buffers.logits, buffers.probs, buffers.coefficients)
        candidate_shares(first_row, last_row, program, buffers.logits, buffers.probs, buffers.shares)
        if kind == DRAW:
            _draw(item, program, grid, buffers)


@inlined
def _draw(item: int, program: Program, grid: TileGrid, buffers: Buffers) -> None:
    """Sample this item's share of the epoch's hardened and stuck gates, initial states, fire masks and damage."""
    control, channels, start = buffers.control, program.channels, buffers.states[0]
    # An item samples a share of each kind: item 2 of 32 has the third share of the samples, of the gates and of the
    # steps. No share depends on another one of this phase.
    if buffers.pool.size:
        first, last = _share(grid.batch, item, grid.blocks)
        draw_pool(grid, channels, first, last, buffers)
        start = buffers.fresh  # for the worst samples, which are replaced after the train step
    seed_grid(grid, buffers.start, channels, item, grid.blocks, control, buffers.same, start)
    _, _, key0, key1 = split(control[TRAIN_KEY], control[TRAIN_KEY + 1])
    first, last, _, _ = _gates(program, item, grid.blocks)
    if buffers.hardening.peak:
        # After `coefficients`, for the same gates: it overwrites their coefficients.
        share = growing_share(buffers.hardening, control[c.EPOCH])
        harden(first, last, share, key0, key1, program, buffers)
    if buffers.faults.rates.gates:
        stick_gates(buffers.faults.rates, first, last, key0, key1, buffers.probs, buffers.coefficients)
    if item == 0:  # for the steps, and for the evaluation of the batch
        buffers.faults.key[0], buffers.faults.key[1] = key0, key1
    if buffers.masks.size:
        fire_mask(grid, item, grid.blocks, buffers.fire_rate, key0, key1, buffers.masks)
    for index in range(item, len(buffers.undamaged), grid.blocks):
        draw_corners(grid, index, key0, key1, buffers.corners)
        write_undamaged(grid, index, buffers.damage_side, buffers.corners, buffers.undamaged)


@inlined
def _update(kind: int, item: int, program: Program, grid: TileGrid, buffers: Buffers, metrics: Array) -> None:
    first, last, first_row, last_row = _gates(program, item, grid.blocks)
    if kind == GRADIENTS:
        partials, probs = buffers.partials, buffers.probs
        finite = gradients(first, last, buffers.table, partials, probs, buffers.moments, buffers.gradients)
        finite_wires = candidate_gradients(first_row, last_row, program, partials, probs, buffers.gradients)
        buffers.finite[item] = finite and finite_wires
        if buffers.squares.size:
            total = squares(first, last, buffers.optimizer.clip, buffers.gradients)
            buffers.squares[item] = total + squares(first_row, last_row, buffers.optimizer.clip, buffers.gradients)
    elif kind == COMMIT:
        # A separate phase, since ADAMW reads the flag that is set here: a step that is not finite is skipped entirely.
        if item == 0:  # the item sums over all blocks in their order; the other items of the phase are empty
            metrics[0] = commit(buffers.losses, buffers.squares, buffers.finite, buffers.control)
            metrics[1] = buffers.control[c.NONFINITE]
            if buffers.pool.size and not buffers.pool_stays:
                rank(grid, buffers)
    elif not buffers.control[c.NONFINITE]:
        if buffers.squares.size:
            # Every item sums all squares itself, in order: that is less work than a phase that shares one number.
            shorten(first, last, buffers.squares.sum(), buffers.gradients)
            shorten(first_row, last_row, buffers.squares.sum(), buffers.gradients)
        adamw(first, last, program.gates, buffers)
        adamw(first_row, last_row, program.gates, buffers)
        if buffers.pool.size and not buffers.pool_stays:
            first, last = _share(grid.batch, item, grid.blocks)
            write_back(grid, program.channels, first, last, buffers)


@inlined
def _gates(program: Program, item: int, items: int) -> Any:
    """Return the limits of an item's two row ranges: its gates, and its candidate logits, which follow all gates."""
    gates, k = program.gates, program.candidates
    if k == 1:
        first, last = _share(gates, item, items)
        return first, last, gates, gates
    # Four gates fill k / 2 complete rows, for every k.
    first, last = _share((gates + 3) // 4, item, items)
    rows = (2 * k * gates + GATE_COUNT - 1) // GATE_COUNT
    first_row, last_row = gates + min(first * k // 2, rows), gates + min(last * k // 2, rows)
    return min(4 * first, gates), min(4 * last, gates), first_row, last_row


@inlined
def _share(count: int, item: int, items: int) -> Any:
    return count * item // items, count * (item + 1) // items
