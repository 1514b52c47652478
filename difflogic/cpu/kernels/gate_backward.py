"""One CA step backward on one tile: adjoints to the patches, moments to the gates."""

import numpy as np

from difflogic.core.wiring import CENTRE, PATCH
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
from difflogic.cpu.program import (
    ALONE,
    FIRST_GATE,
    FIRST_INSTANCE,
    GATES,
    RECORD,
    REPLICAS,
    SEGMENT,
    SLOT,
    SLOT_A,
    SLOT_B,
    A,
    B,
    Program,
)
from difflogic.cpu.tables import DAMAGED, JUDGED, StepGrids, TileGrid
from difflogic.engine.shape import Array


# A step's nodes are computed again rather than kept. Of the paper's checkerboard they are 4,680 rows of 32 floats,
# 600 kB, which the L2 cache holds; those of all steps and tiles would be 190 MB, which no cache does, and to fetch
# a row takes longer than the gate that makes it.
@inlined
def gate_backward(
    thread: int,
    at: int,
    tile: int,
    program: Program,
    grid: TileGrid,
    steps: StepGrids,
    buffers: Buffers,
    moments: Array,
) -> None:
    """`d_patches[(at+1) % 2]` of all tiles becomes this tile's part of `d_patches[at % 2]`, both `[9*C * stride]`.

    `moments [4*G]` gets `(sum d, sum d*a, sum d*b, sum d*a*b)` of the tile's cells added; the last step, with which
    the pass begins, takes its adjoint from the loss. On the way a damaged cell's adjoint ends, and that of an earlier
    loss joins; see `Buffers` for `judged`, `kept` and `given`.
    """
    nodes, slots, masks, states = buffers.nodes[thread], buffers.slots[thread], buffers.masks, buffers.states
    targets, d_patches = buffers.targets, buffers.d_patches[at % 2]
    compute_nodes(program, grid, tile, buffers.coefficients, buffers.shares, states[at], nodes)
    for node in range(program.patch_nodes):
        store(slots, node * TILE, zeros())
    if at == grid.steps - 1:
        # The pass begins here, so that there is nothing yet to gather: the loss adds to zeros.
        slots[program.output_slots * TILE : (program.output_slots + program.outputs) * TILE] = 0
        if buffers.given:
            join(program, tile, targets[0].reshape(-1), targets.shape[2], slots)
        else:
            last = targets[len(targets) - 1]
            buffers.losses[tile] = loss(program, grid, tile, states[grid.steps], grid.stride, grid.guard, last, slots)
    elif steps.spread[at]:
        _gather_copies(program, grid, steps, at, tile, buffers.d_state, slots)
    else:
        _gather(program, grid, at + 1, tile, buffers, slots)
    if masks.size:
        _mask_adjoint(program, tile, masks[at], slots)
    _gates_backward(program, buffers.coefficients, buffers.shares, nodes, slots, moments)
    for node in range(program.patch_nodes):
        store(d_patches, node * grid.stride + grid.guard + tile * TILE, load(slots, node * TILE))
    if masks.size:
        _pass_kept(program, grid, tile, slots, d_patches)


@inlined
def _gather_copies(
    program: Program, grid: TileGrid, steps: StepGrids, at: int, tile: int, d_state: Array, slots: Array
) -> None:
    """The adjoint of what step `at` makes, from all places that it was spread to; `d_state [C * tiles * TILE]`."""
    for c in range(program.channels):
        row, place = (program.output_slots + c) * TILE, d_state.size // program.channels * c
        store(slots, row, zeros())
        for lane in range(min(TILE, grid.cells - tile * TILE)):
            cell = tile * TILE + lane
            for index in range(steps.copy_starts[at, cell], steps.copy_starts[at, cell + 1]):
                slots[row + lane] += d_state[place + steps.copies[at, index]]


@inlined
def _gather(program: Program, grid: TileGrid, at: int, tile: int, buffers: Buffers, slots: Array) -> None:
    """The adjoint of state `at` in the tile, from what the step after it sends back."""
    targets, judged, faults = buffers.targets, buffers.judged, buffers.faults
    width, d_state = targets.shape[2], program.output_slots * TILE
    gather_patches(grid, tile, program.channels, buffers.d_patches[at % 2], slots, d_state, TILE)
    damaged, place = grid.marks[at, DAMAGED], grid.marks[at, JUDGED]
    # Backward, the order of a state's events is turned around. Forward a state is made, judged, damaged, and then
    # has its faults; so what the next step sends back goes through the faults, then loses the squares, and only
    # then joins the adjoint of the state's own loss.
    if faults.listed.size:
        change_bits(faults, grid, at, tile, slots, d_state, program.channels, TILE, True)
    if damaged >= 0:
        zero_squares(slots, d_state, program.channels, TILE, buffers.kept[damaged], tile * TILE)
    if place >= 0 and buffers.given:
        join(program, tile, judged[place], width, slots)
    elif place >= 0:
        target = targets[place % len(targets)]
        buffers.losses[tile] += loss(program, grid, tile, judged[place], width, 0, target, slots)


@inlined
def _gates_backward(
    program: Program, coefficients: Array, shares: Array, nodes: Array, slots: Array, moments: Array
) -> None:
    """Every gate from the last to the first."""
    segments, records = program.segments, program.records
    into = slots if program.candidates == 1 else nodes
    for segment in range(segments.size - SEGMENT, -1, -SEGMENT):
        record, first = RECORD * segments[segment + FIRST_INSTANCE], 4 * segments[segment + FIRST_GATE]
        end, replicas = first + 4 * segments[segment + GATES], segments[segment + REPLICAS]
        # Two loops, so that no instance has to ask which of the two it is.
        if segments[segment + ALONE]:
            _segment(records, record, first, end, replicas, True, coefficients, nodes, slots, into, moments)
        else:
            _segment(records, record, first, end, replicas, False, coefficients, nodes, slots, slots, moments)
        if program.candidates > 1:
            choose_backward(program, segment, shares, nodes, slots, moments)


@inlined
def _segment(
    records: Array,
    record: int,
    first: int,
    end: int,
    replicas: int,
    alone: bool,
    coefficients: Array,
    nodes: Array,
    slots: Array,
    into: Array,
    moments: Array,
) -> None:
    """Send `d*(ca + cab*b)` and `d*(cb + cab*a)` to the inputs' slots `into`, `d` being what is in the own."""
    # Coefficients are loaded once for all replicas of a gate, and the moments of its replicas stay in registers until
    # the last: what is summed over 32 cells and stored is one vector of four for each gate, not for each instance. Part
    # by part of a row, all that is not coefficient or moment is one register wide, so that 16 of them suffice.
    for gate in range(first, end, 4):
        ca, cb = splat_part(peek(coefficients, gate + 1)), splat_part(peek(coefficients, gate + 2))
        cab, nothing = splat_part(peek(coefficients, gate + 3)), splat_part(np.float32(0))
        sum_d, sum_da, sum_db, sum_dab = no_sums(), no_sums(), no_sums(), no_sums()
        for _ in range(replicas):
            own, at_a, at_b = peek(records, record + SLOT), peek(records, record + A), peek(records, record + B)
            slot_a, slot_b = peek(records, record + SLOT_A), peek(records, record + SLOT_B)
            for part in range(0, TILE, PART):
                d, a, b = load_part(slots, own + part), load_part(nodes, at_a + part), load_part(nodes, at_b + part)
                store(slots, own + part, nothing)
                da = mul(d, a)
                sum_d, sum_da = add_eights(sum_d, d), add_eights(sum_da, da)
                sum_db, sum_dab = fma_eights(d, b, sum_db), fma_eights(da, b, sum_dab)
                to_a, to_b = fma(cab, b, ca), fma(cab, a, cb)
                if alone:
                    store(into, slot_a + part, mul(d, to_a))
                    store(into, slot_b + part, mul(d, to_b))
                else:  # in this order, as both inputs may be one node
                    store(into, slot_a + part, fma(d, to_a, load_part(into, slot_a + part)))
                    store(into, slot_b + part, fma(d, to_b, load_part(into, slot_b + part)))
            record += RECORD
        add_sums(moments, gate, sum_d, sum_da, sum_db, sum_dab)


@inlined
def _mask_adjoint(program: Program, tile: int, mask: Array, slots: Array) -> None:
    """If a cell kept its state, its gates get no adjoint. The adjoint goes to the rows after the last slot."""
    fires = load(mask, tile * TILE)
    for c in range(program.channels):
        row = (program.output_slots + c) * TILE
        d = load(slots, row)
        store(slots, (program.slots + c) * TILE, where(fires, zeros(), d))
        store(slots, row, where(fires, d, zeros()))


@inlined
def _pass_kept(program: Program, grid: TileGrid, tile: int, slots: Array, d_patches: Array) -> None:
    """Add the adjoint that was kept aside to the cell itself, the centre of its patch."""
    for c in range(program.channels):
        place = (c * PATCH + CENTRE) * grid.stride + grid.guard + tile * TILE
        store(d_patches, place, add(load(d_patches, place), load(slots, (program.slots + c) * TILE)))
