"""A whole train step, or the parts of it that a call wants, by any number of threads.

The work is a list of *phases*, in each of which every block of tiles (or share of the gates) is one item:

    prepare | forward step 0 .. T-1 | backward step T-1 .. 0 | gradients | commit | adamw

`phases` makes such lists. Items are numbered through, over phases and epochs, and a thread takes the next number as
soon as all items of earlier phases are done (`atomics.take`). Nothing else is ever waited for, neither a thread that
starts late nor one that the system holds up between items. An item writes the same places in the same order whoever
takes it, so that results do not depend on threads.

An example: a rollout of two steps on four blocks has the phases prepare, forward 0, forward 1, and so items 0 to 11.
Two threads begin: one takes item 0, the other item 1, and whoever is done first takes 2. Item 4, the first block of
forward 0, is given out when `DONE` counts 4. A thread that looks for work before that waits without having taken
anything; where the system holds it up just then, the other thread does all that is left. With `epochs` the list begins
anew at item 12, whose phase is `12 // 4 % 3`, the first.
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
from difflogic.cpu.kernels.damage import draw_corners, write_kept
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
    thread: int,
    phases: Array,
    program: Program,
    grid: TileGrid,
    steps: StepGrids,
    buffers: Buffers,
    history: Array,
    counters: Array,
) -> None:
    """One thread's part of `phases [n, 2]`, kind and CA step, `len(history)` times; each leaves `(loss, skipped)`."""
    before = flush_denormals()  # the thread may be the caller's, whose arithmetic must be as it was
    _work(thread, phases, program, grid, steps, buffers, history, counters)
    restore(before)


@inlined
def _work(
    thread: int,
    phases: Array,
    program: Program,
    grid: TileGrid,
    steps: StepGrids,
    buffers: Buffers,
    history: Array,
    counters: Array,
) -> None:
    # Python is left once for many epochs: nothing between two epochs, or two steps, needs it.
    items, each = grid.blocks, len(phases)
    total = len(history) * each * items
    while True:
        # A ticket is a phase and an item of it in one number, so that one counter orders all epochs: nobody needs to
        # know which phase the others are in.
        ticket = take(counters, items, total)
        if ticket >= total:
            return
        round_, item = ticket // items, ticket % items
        kind, at = phases[round_ % each, 0], phases[round_ % each, 1]
        here = _on_step(grid, steps, at)
        _item(thread, kind, at, item, program, here, steps, buffers, history[round_ // each])
        fetch_add(counters, DONE, 1)


@inlined
def _on_step(grid: TileGrid, steps: StepGrids, at: int) -> TileGrid:
    """The grid that step `at` is done on."""
    place, grids = steps.of_step[at], steps.grids
    if place < 0:
        return grid
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
    thread: int,
    kind: int,
    at: int,
    item: int,
    program: Program,
    grid: TileGrid,
    steps: StepGrids,
    buffers: Buffers,
    row: Array,
) -> None:
    # Blocks, not threads, own tiles and sums: with any number of threads the same numbers are added in the same order.
    first, last = _share(grid.tiles, item, grid.blocks)
    if kind == FORWARD:
        for tile in range(first, last):
            gate_forward(thread, at, tile, program, grid, steps, buffers)
            finish_state(program, grid, at + 1, tile, buffers)
    elif kind == BACKWARD:
        if at == grid.steps - 1:  # with which the pass begins
            # A block's moments have one writer in each phase, so that the order of their sum is that of the tiles.
            buffers.partials[item] = 0
        for tile in range(first, last):
            gate_backward(thread, at, tile, program, grid, steps, buffers, buffers.partials[item])
    elif kind == D_STATE:
        width, d_patches = buffers.d_state.size // program.channels, buffers.d_patches[at % 2]
        for tile in range(first, last):
            gather_patches(grid, tile, program.channels, d_patches, buffers.d_state, tile * TILE, width)
    elif kind < FORWARD:
        _prepare(thread, kind, item, program, grid, buffers)
    else:
        _update(kind, item, program, grid, buffers, row)


@inlined
def _prepare(thread: int, kind: int, item: int, program: Program, grid: TileGrid, buffers: Buffers) -> None:
    if kind == TARGET:
        if len(buffers.x):
            first, last = _share(grid.batch, item, grid.blocks)
            # After DRAW has filled the grids: a sample covers its own channels, and the others keep what was drawn.
            draw_samples(grid, first, last, buffers.control, buffers.x, buffers.y, buffers.states[0], buffers.targets)
            return
        nodes = buffers.nodes[thread]
        for tile in range(*_share(grid.tiles, item, grid.blocks)):
            rule_target(grid, tile, program.channels, buffers.rule, buffers.states[0], nodes, buffers.targets[0])
    elif kind == DAMAGE:
        for tile in range(*_share(grid.tiles, item, grid.blocks)):
            finish_state(program, grid, 0, tile, buffers)
    else:
        # Gates have nothing to do with tiles: they are shared out among as many items, of which some may get none.
        first, last, first_row, last_row = _gates(program, item, grid.blocks)
        coefficients(first, last, buffers.table, buffers.logits, buffers.probs, buffers.coefficients)
        candidate_shares(first_row, last_row, program, buffers.logits, buffers.probs, buffers.shares)
        if kind == DRAW:
            _draw(item, program, grid, buffers)


@inlined
def _draw(item: int, program: Program, grid: TileGrid, buffers: Buffers) -> None:
    """This epoch's hardened and stuck gates, start grids, fire masks and damage."""
    control, channels, start = buffers.control, program.channels, buffers.states[0]
    # Shares of different things, all numbered by the same items: whoever takes item 2 of 32 draws the third share of
    # the samples, of the gates and of the steps. No share depends on another within a phase.
    if buffers.pool.size:
        first, last = _share(grid.batch, item, grid.blocks)
        draw_pool(grid, channels, first, last, control, buffers.pool, buffers.places, start)
        start = buffers.fresh  # for the worst samples, which are replaced after the step
    seed_grid(grid, buffers.start, channels, item, grid.blocks, control, buffers.same, start)
    _, _, key0, key1 = split(control[TRAIN_KEY], control[TRAIN_KEY + 1])
    first, last, _, _ = _gates(program, item, grid.blocks)
    if buffers.hardening.peak:
        # After `coefficients` and for the same gates: it overwrites what that has just written.
        share = growing_share(buffers.hardening, control[c.EPOCH])
        harden(first, last, share, key0, key1, program, buffers)
    if buffers.faults.rates.gates:
        stick_gates(buffers.faults.rates, first, last, key0, key1, buffers.probs, buffers.coefficients)
    if item == 0:  # for the steps, and for the evaluation of this batch
        buffers.faults.key[0], buffers.faults.key[1] = key0, key1
    if buffers.masks.size:
        fire_mask(grid, item, grid.blocks, buffers.fire_rate, key0, key1, buffers.masks)
    for index in range(item, len(buffers.kept), grid.blocks):
        draw_corners(grid, index, key0, key1, buffers.corners)
        write_kept(grid, index, buffers.damage_side, buffers.corners, buffers.kept)


@inlined
def _update(kind: int, item: int, program: Program, grid: TileGrid, buffers: Buffers, row: Array) -> None:
    first, last, first_row, last_row = _gates(program, item, grid.blocks)
    if kind == GRADIENTS:
        partials, probs = buffers.partials, buffers.probs
        finite = gradients(first, last, buffers.table, partials, probs, buffers.moments, buffers.gradients)
        of_wires = candidate_gradients(first_row, last_row, program, partials, probs, buffers.gradients)
        buffers.finite[item] = finite and of_wires
        if buffers.squares.size:
            total = squares(first, last, buffers.optimizer.clip, buffers.gradients)
            buffers.squares[item] = total + squares(first_row, last_row, buffers.optimizer.clip, buffers.gradients)
    elif kind == COMMIT:
        # After this phase every thread reads the flag that is set here: a step that is not finite must not be half
        # taken.
        if item == 0:  # sums over blocks, in their order; the phase's other items only let the count go on
            row[0] = commit(buffers.losses, buffers.squares, buffers.finite, buffers.control)
            row[1] = buffers.control[c.NONFINITE]
            if buffers.pool.size and not buffers.pool_stays:
                last_state, targets = buffers.states[grid.steps], buffers.targets[0]
                losses, worst = buffers.sample_losses, buffers.worst
                rank(grid, program.channels, buffers.pool_reset, last_state, targets, losses, worst)
    elif not buffers.control[c.NONFINITE]:
        control = buffers.control
        if buffers.squares.size:
            # Every item sums all squares itself, in their order: that is less work than a phase to hand one number
            # round.
            shorten(first, last, buffers.squares.sum(), buffers.gradients)
            shorten(first_row, last_row, buffers.squares.sum(), buffers.gradients)
        optimizer, table, logits, mu, nu = buffers.optimizer, buffers.table, buffers.logits, buffers.mu, buffers.nu
        adamw(first, last, program.gates, optimizer, control, table, buffers.gradients, logits, mu, nu)
        adamw(first_row, last_row, program.gates, optimizer, control, table, buffers.gradients, logits, mu, nu)
        if buffers.pool.size and not buffers.pool_stays:
            first, end = _share(grid.batch, item, grid.blocks)
            state, fresh = buffers.states[grid.steps], buffers.fresh
            write_back(grid, program.channels, first, end, state, fresh, buffers.worst, buffers.places, buffers.pool)


@inlined
def _gates(program: Program, item: int, items: int) -> Any:
    """An item's gates, first and last, and the rows behind all gates that hold the logits of their candidates."""
    gates, k = program.gates, program.candidates
    if k == 1:
        first, last = _share(gates, item, items)
        return first, last, gates, gates
    # Four gates have whole rows, k / 2 of them, whatever k is.
    first, last = _share((gates + 3) // 4, item, items)
    rows = (2 * k * gates + GATE_COUNT - 1) // GATE_COUNT
    of_rows = gates + min(first * k // 2, rows), gates + min(last * k // 2, rows)
    return min(4 * first, gates), min(4 * last, gates), of_rows[0], of_rows[1]


@inlined
def _share(count: int, item: int, items: int) -> Any:
    return count * item // items, count * (item + 1) // items
