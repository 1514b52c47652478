"""Forward pass of one CA step of the soft circuit on one tile."""

from difflogic.cpu.codegen.compiled import inlined
from difflogic.cpu.codegen.vectors import TILE, fma, load, peek, splat, store, where
from difflogic.cpu.kernels.buffers import Buffers
from difflogic.cpu.kernels.candidates import choose
from difflogic.cpu.kernels.damage import zero_squares
from difflogic.cpu.kernels.faults import change_bits
from difflogic.cpu.kernels.grid import write_patches
from difflogic.cpu.program import FIRST_GATE, FIRST_INSTANCE, GATES, RECORD, REPLICAS, SEGMENT, A, B, Program
from difflogic.cpu.tables import DAMAGED, LOSS, StepGrids, TileGrid
from difflogic.engine.shape import Array


@inlined
def gate_forward(
    thread: int, step: int, tile: int, program: Program, grid: TileGrid, steps: StepGrids, buffers: Buffers
) -> None:
    """Compute a tile of `states[step + 1]` from `states[step]`; cells whose mask is 0 keep their old state."""
    masks, states, nodes = buffers.masks, buffers.states, buffers.nodes[thread]
    # All tiles read `states[step]` and write `states[step + 1]`: no tile waits for another within a step.
    compute_nodes(program, grid, tile, buffers.coefficients, buffers.shares, states[step], nodes)
    if steps.spread[step]:
        for c in range(program.outputs):
            row, place = (program.nodes - program.outputs + c) * TILE, c * grid.stride + grid.guard
            for lane in range(min(TILE, grid.cells - tile * TILE)):
                cell = tile * TILE + lane
                for index in range(steps.copy_starts[step, cell], steps.copy_starts[step, cell + 1]):
                    states[step + 1, place + steps.copies[step, index]] = nodes[row + lane]
        return
    for c in range(program.outputs):
        place = c * grid.stride + grid.guard + tile * TILE
        new = load(nodes, (program.nodes - program.outputs + c) * TILE)
        if masks.size:
            new = where(load(masks[step], tile * TILE), new, load(states[step], place))
        store(states[step + 1], place, new)


@inlined
def finish_state(program: Program, grid: TileGrid, step: int, tile: int, buffers: Buffers) -> None:
    """Copy a tile of `states[step]` if that state has a loss and is not the last; then apply damage and faults."""
    place, damaged = grid.marks[step, LOSS], grid.marks[step, DAMAGED]
    begin, states, faults = grid.guard + tile * TILE, buffers.states, buffers.faults
    # A copy, since the loss compares the state before its damage.
    if place >= 0 and step < grid.steps:
        for c in range(grid.loss_channels):
            row = c * grid.tiles * TILE + tile * TILE
            store(buffers.loss_states[place], row, load(states[step], c * grid.stride + begin))
    if damaged >= 0:
        zero_squares(states[step], begin, program.channels, grid.stride, buffers.undamaged[damaged], tile * TILE)
    if faults.listed.size and step < grid.steps:
        change_bits(faults, grid, step, tile, states[step], begin, program.channels, grid.stride, False)


@inlined
def compute_nodes(
    program: Program, grid: TileGrid, tile: int, coefficients: Array, shares: Array, state: Array, nodes: Array
) -> None:
    """Compute the rows of all nodes in a tile.

    A gate is `c0 + ca*a + cb*b + cab*a*b` with its four `coefficients [4*G]`; `shares` are the weights of candidates.
    """
    write_patches(grid, tile, program.channels, state, nodes)
    segments, records = program.segments, program.records
    # The records and rows of a segment's instances are consecutive, so that only the two rows that a gate reads have to
    # be looked up.
    for segment in range(0, segments.size, SEGMENT):
        if program.candidates > 1:
            choose(program, segment, shares, nodes)
        record = RECORD * segments[segment + FIRST_INSTANCE]
        row = (program.patch_nodes + segments[segment + FIRST_INSTANCE]) * TILE
        first = 4 * segments[segment + FIRST_GATE]
        for gate in range(first, first + 4 * segments[segment + GATES], 4):
            # A perception gate has one instance per channel, with the same coefficients, which stay in registers.
            c0, ca = splat(peek(coefficients, gate)), splat(peek(coefficients, gate + 1))
            cb, cab = splat(peek(coefficients, gate + 2)), splat(peek(coefficients, gate + 3))
            for _ in range(segments[segment + REPLICAS]):
                a, b = load(nodes, peek(records, record + A)), load(nodes, peek(records, record + B))
                # (cab*a + cb)*b + (ca*a + c0): three fused operations, half as many as term by term.
                store(nodes, row, fma(fma(cab, a, cb), b, fma(ca, a, c0)))
                record += RECORD
                row += TILE
