"""Backward pass of one CA step on one tile: adjoints of the patches, moments of the gates."""

import numpy as np

from difflogic.core.wiring import CENTRE, PATCH
from difflogic.cpu import program as p
from difflogic.cpu.codegen.compiled import inlined
from difflogic.cpu.codegen.processor import PART
from difflogic.cpu.codegen.vectors import (
    TILE,
    add,
    add_eights,
    add_sums,
    fma,
    fma_eights,
    load,
    load_part,
    mul,
    no_sums,
    peek,
    splat_part,
    store,
    where,
    zeros,
)
from difflogic.cpu.kernels.buffers import Buffers
from difflogic.cpu.kernels.candidates import choose_backward
from difflogic.cpu.kernels.damage import zero_squares
from difflogic.cpu.kernels.faults import change_bits
from difflogic.cpu.kernels.gate_forward import compute_nodes
from difflogic.cpu.kernels.grid import gather_patches
from difflogic.cpu.kernels.loss import join, loss
from difflogic.cpu.program import Program
from difflogic.cpu.tables import DAMAGED, LOSS, StepGrids, TileGrid
from difflogic.engine.shape import Array


# The nodes of a step are recomputed instead of stored. For the paper's checkerboard they are 4,680 rows of 32 floats,
# 600 kB, which fit the L2 cache. Those of all steps and tiles would take 190 MB, and loading a row from memory takes
# longer than computing its gate.
@inlined
def gate_backward(
    thread: int, step: int, tile: int, program: Program, grid: TileGrid, steps: StepGrids, buffers: Buffers, block: int
) -> None:
    """Compute a tile of `d_patches[step % 2]` from `d_patches[(step + 1) % 2]`, both `[9*C * stride]`.

    Add `(sum d, sum d*a, sum d*b, sum d*a*b)` over the cells of the tile to `partials[block]`. The last step, with
    which the backward pass begins, gets its adjoint from the loss. The adjoint of a damaged cell is 0, and the adjoint
    of an earlier loss is added; see `loss_states`, `undamaged` and `has_adjoints` in `Buffers`.
    """
    nodes, slots, masks, states = buffers.nodes[thread], buffers.slots[thread], buffers.masks, buffers.states
    targets, d_patches = buffers.targets, buffers.d_patches[step % 2]
    compute_nodes(program, grid, tile, buffers.coefficients, buffers.shares, states[step], nodes)
    for node in range(program.patch_nodes):
        store(slots, node * TILE, zeros())
    if step == grid.steps - 1:
        # The backward pass begins here, with nothing to gather yet: the loss adds to zeros.
        slots[program.output_slots * TILE : (program.output_slots + program.outputs) * TILE] = 0
        if buffers.has_adjoints:
            join(program, tile, targets[0].reshape(-1), targets.shape[2], slots)
        else:
            last = targets[len(targets) - 1]
            buffers.losses[tile] = loss(program, grid, tile, states[grid.steps], grid.stride, grid.guard, last, slots)
    elif steps.spread[step]:
        _gather_copies(program, grid, steps, step, tile, buffers.d_state, slots)
    else:
        _gather(program, grid, step + 1, tile, buffers, slots)
    if masks.size:
        _mask_adjoint(program, tile, masks[step], slots)
    _gates_backward(program, buffers.coefficients, buffers.shares, nodes, slots, buffers.partials[block])
    for node in range(program.patch_nodes):
        store(d_patches, node * grid.stride + grid.guard + tile * TILE, load(slots, node * TILE))
    if masks.size:
        _add_unfired(program, grid, tile, slots, d_patches)


@inlined
def _gather_copies(
    program: Program, grid: TileGrid, steps: StepGrids, step: int, tile: int, d_state: Array, slots: Array
) -> None:
    """Write each cell's adjoint to `slots`: the sum of `d_state [C * tiles * TILE]` over the cells it was copied to."""
    for c in range(program.channels):
        row, place = (program.output_slots + c) * TILE, d_state.size // program.channels * c
        store(slots, row, zeros())
        for lane in range(min(TILE, grid.cells - tile * TILE)):
            cell = tile * TILE + lane
            for index in range(steps.copy_starts[step, cell], steps.copy_starts[step, cell + 1]):
                slots[row + lane] += d_state[place + steps.copies[step, index]]


@inlined
def _gather(program: Program, grid: TileGrid, step: int, tile: int, buffers: Buffers, slots: Array) -> None:
    """Compute a tile of the adjoint of the state after `step` steps, from the next step's patches and its own loss."""
    targets, loss_states, faults = buffers.targets, buffers.loss_states, buffers.faults
    width, d_state = targets.shape[2], program.output_slots * TILE
    gather_patches(grid, tile, program.channels, buffers.d_patches[step % 2], slots, d_state, TILE)
    damaged, place = grid.marks[step, DAMAGED], grid.marks[step, LOSS]
    # The reverse order of the forward pass, in which a state is computed, compared by its loss, damaged, and then gets
    # its faults: so the adjoint of the next step passes the faults, then the damage, and then the loss is added.
    if faults.listed.size:
        change_bits(faults, grid, step, tile, slots, d_state, program.channels, TILE, True)
    if damaged >= 0:
        zero_squares(slots, d_state, program.channels, TILE, buffers.undamaged[damaged], tile * TILE)
    if place >= 0 and buffers.has_adjoints:
        join(program, tile, loss_states[place], width, slots)
    elif place >= 0:
        target = targets[place % len(targets)]
        buffers.losses[tile] += loss(program, grid, tile, loss_states[place], width, 0, target, slots)


@inlined
def _gates_backward(
    program: Program, coefficients: Array, shares: Array, nodes: Array, slots: Array, moments: Array
) -> None:
    """Compute the backward pass of all gates, segment by segment from the last to the first."""
    segments = program.segments
    into = slots if program.candidates == 1 else nodes
    for segment in range(segments.size - p.SEGMENT, -1, -p.SEGMENT):
        # Two specialised loops, so that `alone` is not tested for every instance.
        if segments[segment + p.ALONE]:
            _segment(program, segment, True, coefficients, nodes, slots, into, moments)
        else:
            _segment(program, segment, False, coefficients, nodes, slots, slots, moments)
        if program.candidates > 1:
            choose_backward(program, segment, shares, nodes, slots, moments)


@inlined
def _segment(
    program: Program, segment: int, alone: bool, coefficients: Array, nodes: Array, slots: Array, into: Array,
    moments: Array,
) -> None:  # fmt: skip
    """Add the inputs' adjoints, `d*(ca + cab*b)` and `d*(cb + cab*a)`, to slots in `into`; store them if `alone`."""
    # The coefficients of a gate are loaded once for all its replicas, and their moments stay in registers: sums over 32
    # cells are reduced and stored once per gate, not once per instance. Rows are processed in parts of one register, so
    # that 16 registers suffice for coefficients, moments and values.
    segments, records = program.segments, program.records
    record, first = p.RECORD * segments[segment + p.FIRST_INSTANCE], 4 * segments[segment + p.FIRST_GATE]
    end, replicas = first + 4 * segments[segment + p.GATES], segments[segment + p.REPLICAS]
    for gate in range(first, end, 4):
        ca, cb = splat_part(peek(coefficients, gate + 1)), splat_part(peek(coefficients, gate + 2))
        cab, zero = splat_part(peek(coefficients, gate + 3)), splat_part(np.float32(0))
        sum_d, sum_da, sum_db, sum_dab = no_sums(), no_sums(), no_sums(), no_sums()
        for _ in range(replicas):
            own, row_a, row_b = peek(records, record + p.SLOT), peek(records, record + p.A), peek(records, record + p.B)
            slot_a, slot_b = peek(records, record + p.SLOT_A), peek(records, record + p.SLOT_B)
            for part in range(0, TILE, PART):
                d, a, b = load_part(slots, own + part), load_part(nodes, row_a + part), load_part(nodes, row_b + part)
                store(slots, own + part, zero)
                da = mul(d, a)
                sum_d, sum_da = add_eights(sum_d, d), add_eights(sum_da, da)
                sum_db, sum_dab = fma_eights(d, b, sum_db), fma_eights(da, b, sum_dab)
                to_a, to_b = fma(cab, b, ca), fma(cab, a, cb)
                if alone:
                    store(into, slot_a + part, mul(d, to_a))
                    store(into, slot_b + part, mul(d, to_b))
                else:  # one after the other, since both inputs may be the same node
                    store(into, slot_a + part, fma(d, to_a, load_part(into, slot_a + part)))
                    store(into, slot_b + part, fma(d, to_b, load_part(into, slot_b + part)))
            record += p.RECORD
        add_sums(moments, gate, sum_d, sum_da, sum_db, sum_dab)


@inlined
def _mask_adjoint(program: Program, tile: int, mask: Array, slots: Array) -> None:
    """Move the output adjoints of cells that did not fire from their slots to the rows after the last slot."""
    fires = load(mask, tile * TILE)
    for c in range(program.channels):
        row = (program.output_slots + c) * TILE
        d = load(slots, row)
        store(slots, (program.slots + c) * TILE, where(fires, zeros(), d))
        store(slots, row, where(fires, d, zeros()))


@inlined
def _add_unfired(program: Program, grid: TileGrid, tile: int, slots: Array, d_patches: Array) -> None:
    """Add the adjoints of cells that did not fire to `d_patches`, at the centres of the cells' own patches."""
    for c in range(program.channels):
        place = (c * PATCH + CENTRE) * grid.stride + grid.guard + tile * TILE
        store(d_patches, place, add(load(d_patches, place), load(slots, (program.slots + c) * TILE)))
