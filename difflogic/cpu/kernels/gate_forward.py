"""One CA step of the soft circuit on one tile."""

from difflogic.cpu.codegen.compiled import inlined
from difflogic.cpu.codegen.vectors import TILE, fma, load, peek, splat, store, where
from difflogic.cpu.kernels.buffers import Buffers
from difflogic.cpu.kernels.candidates import choose
from difflogic.cpu.kernels.damage import zero_squares
from difflogic.cpu.kernels.faults import change_bits
from difflogic.cpu.kernels.grid import write_patches
from difflogic.cpu.program import FIRST_GATE, FIRST_INSTANCE, GATES, RECORD, REPLICAS, SEGMENT, A, B, Program
from difflogic.cpu.tables import DAMAGED, JUDGED, StepGrids, TileGrid
from difflogic.engine.shape import Array


@inlined
def gate_forward(
    thread: int, at: int, tile: int, program: Program, grid: TileGrid, steps: StepGrids, buffers: Buffers
) -> None:
    """Compute the tile's part of state `at + 1` from state `at`; a cell whose mask is 0 keeps its old state."""
    masks, states, nodes = buffers.masks, buffers.states, buffers.nodes[thread]
    # Neighbouring tiles read `states[at]` and write `states[at + 1]`: no tile waits for another within a step.
    compute_nodes(program, grid, tile, buffers.coefficients, buffers.shares, states[at], nodes)
    if steps.spread[at]:
        for c in range(program.outputs):
            row, place = (program.nodes - program.outputs + c) * TILE, c * grid.stride + grid.guard
            for lane in range(min(TILE, grid.cells - tile * TILE)):
                cell = tile * TILE + lane
                for index in range(steps.copy_starts[at, cell], steps.copy_starts[at, cell + 1]):
                    states[at + 1, place + steps.copies[at, index]] = nodes[row + lane]
        return
    for c in range(program.outputs):
        place = c * grid.stride + grid.guard + tile * TILE
        new = load(nodes, (program.nodes - program.outputs + c) * TILE)
        if masks.size:
            new = where(load(masks[at], tile * TILE), new, load(states[at], place))
        store(states[at + 1], place, new)


@inlined
def finish_state(program: Program, grid: TileGrid, at: int, tile: int, buffers: Buffers) -> None:
    """The tile of `states[at]` is complete: keep what an earlier loss than the last compares, and damage it.

    The last state is compared as it is: nothing happens to it.
    """
    place, damaged = grid.marks[at, JUDGED], grid.marks[at, DAMAGED]
    begin, states, faults = grid.guard + tile * TILE, buffers.states, buffers.faults
    # A copy, since the damage below changes the state, and the loss judges what the step made of it.
    if place >= 0 and at < grid.steps:
        for c in range(grid.loss_channels):
            row = c * grid.tiles * TILE + tile * TILE
            store(buffers.judged[place], row, load(states[at], c * grid.stride + begin))
    if damaged >= 0:
        zero_squares(states[at], begin, program.channels, grid.stride, buffers.kept[damaged], tile * TILE)
    if faults.listed.size and at < grid.steps:
        change_bits(faults, grid, at, tile, states[at], begin, program.channels, grid.stride, False)


@inlined
def compute_nodes(
    program: Program, grid: TileGrid, tile: int, coefficients: Array, shares: Array, state: Array, nodes: Array
) -> None:
    """Every node's row: a gate is `c0 + ca*a + cb*b + cab*a*b`, `coefficients [4*G]`; of candidates `shares [2k*G]`."""
    write_patches(grid, tile, program.channels, state, nodes)
    segments, records = program.segments, program.records
    # Instances of a segment follow each other, and so do their records and rows: both move on by a constant, and
    # nothing but the two rows that a gate reads is looked up.
    for segment in range(0, segments.size, SEGMENT):
        if program.candidates > 1:
            choose(program, segment, shares, nodes)
        record = RECORD * segments[segment + FIRST_INSTANCE]
        row = (program.patch_nodes + segments[segment + FIRST_INSTANCE]) * TILE
        first = 4 * segments[segment + FIRST_GATE]
        for gate in range(first, first + 4 * segments[segment + GATES], 4):
            # A perception gate has one instance for each channel, with the same coefficients: they are spread over
            # registers once, and stay there for all its replicas.
            c0, ca = splat(peek(coefficients, gate)), splat(peek(coefficients, gate + 1))
            cb, cab = splat(peek(coefficients, gate + 2)), splat(peek(coefficients, gate + 3))
            for _ in range(segments[segment + REPLICAS]):
                a, b = load(nodes, peek(records, record + A)), load(nodes, peek(records, record + B))
                # (cab*a + cb)*b + (ca*a + c0): three fused operations, and half of what the terms one by one take.
                store(nodes, row, fma(fma(cab, a, cb), b, fma(ca, a, c0)))
                record += RECORD
                row += TILE
