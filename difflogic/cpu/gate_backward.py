"""One CA step backward on one tile: adjoints to the patches, moments to the gates."""

from __future__ import annotations

from typing import Any

from difflogic.cpu.compiled import inner
from difflogic.cpu.gate_forward import compute_nodes
from difflogic.cpu.grid import gather_patches
from difflogic.cpu.loss import loss
from difflogic.cpu.tables import Array, Grid, Program
from difflogic.cpu.vectors import TILE, add, add_sums, fma, load, mul, splat, store, where, zeros
from difflogic.wiring import CENTRE, PATCH


@inner
def gate_backward(
    program: Program,
    grid: Grid,
    at: int,
    tile: int,
    coefficients: Array,
    edge_coefficients: Array,
    masks: Array,
    states: Array,
    targets: Array,
    nodes: Array,
    d_nodes: Array,
    d_patches: Array,
    partials: Array,
    losses: Array,
) -> None:
    """`d_patches[(at+1) % 2]` of all tiles becomes this tile's part of `d_patches[at % 2]`, both `[9*C * stride]`.

    `partials [tiles, 4*G]` gets the moments `(sum d, sum d*a, sum d*b, sum d*a*b)` of the tile's cells added;
    the last step, with which the pass begins, clears them first and takes its adjoint from the loss.
    """
    compute_nodes(program, grid, tile, coefficients, states[at], nodes)
    top = program.nodes - program.channels
    if at == grid.steps - 1:
        partials[tile] = 0
        losses[tile] = loss(program, grid, tile, states[grid.steps], targets, d_nodes, top)
    else:
        gather_patches(grid, tile, program.channels, d_patches[(at + 1) % 2], d_nodes, top)
    if masks.size:
        _hold_back(program, tile, masks[at], d_nodes, top)
    _gates_backward(program, tile, edge_coefficients, nodes, d_nodes, partials[tile])
    _patches_backward(program, grid, tile, edge_coefficients, nodes, d_nodes, d_patches[at % 2])
    if masks.size:
        _pass_kept(program, grid, tile, d_nodes, d_patches[at % 2])


@inner
def _pull(program: Program, node: int, edge_coefficients: Array, nodes: Array, d_nodes: Array) -> Any:
    """The adjoint of a node: over the gates that read it, `d*(ca + cab*b)` as input a, `d*(cb + cab*a)` as b."""
    total = zeros()
    for edge in range(program.edge_starts[node], program.edge_starts[node + 1]):
        slope = fma(
            splat(edge_coefficients[edge, 1]),
            load(nodes, program.edges[edge, 1]),
            splat(edge_coefficients[edge, 0]),
        )
        total = fma(load(d_nodes, program.edges[edge, 0]), slope, total)
    return total


@inner
def _gates_backward(
    program: Program, tile: int, edge_coefficients: Array, nodes: Array, d_nodes: Array, moments: Array
) -> None:
    """Every gate's adjoint, from the last to the first, and its moments: no adjoint is stored more than once."""
    outputs = program.nodes - program.channels
    for segment in range(len(program.segments) - 1, -1, -1):
        first_gate, gates, instance, replicas = program.segments[segment]
        for gate in range(first_gate, first_gate + gates):
            sum_d, sum_da, sum_db, sum_dab = zeros(), zeros(), zeros(), zeros()
            for _ in range(replicas):
                node = program.patch_nodes + instance
                if node >= outputs:
                    d = load(d_nodes, node * TILE)
                else:
                    d = _pull(program, node, edge_coefficients, nodes, d_nodes)
                    store(d_nodes, node * TILE, d)
                a, b = load(nodes, program.wires[instance, 0]), load(nodes, program.wires[instance, 1])
                da = mul(d, a)
                sum_d, sum_da = add(sum_d, d), add(sum_da, da)
                sum_db, sum_dab = fma(d, b, sum_db), fma(da, b, sum_dab)
                instance += 1
            add_sums(moments, 4 * gate, sum_d, sum_da, sum_db, sum_dab)


@inner
def _patches_backward(
    program: Program, grid: Grid, tile: int, edge_coefficients: Array, nodes: Array, d_nodes: Array, d_patches: Array
) -> None:
    stride = d_patches.size // program.patch_nodes
    for node in range(program.patch_nodes):
        d = _pull(program, node, edge_coefficients, nodes, d_nodes)
        store(d_patches, node * stride + grid.guard + tile * TILE, d)


@inner
def _hold_back(program: Program, tile: int, mask: Array, d_nodes: Array, outputs: int) -> None:
    """Where a cell kept its state, its gates get no adjoint: it is put aside in the rows past the last node."""
    fires = load(mask, tile * TILE)
    for c in range(program.channels):
        row, aside = (outputs + c) * TILE, (program.nodes + c) * TILE
        d = load(d_nodes, row)
        store(d_nodes, aside, where(fires, zeros(), d))
        store(d_nodes, row, where(fires, d, zeros()))


@inner
def _pass_kept(program: Program, grid: Grid, tile: int, d_nodes: Array, d_patches: Array) -> None:
    """What was put aside goes to the cell itself, the centre of its patch."""
    stride = d_patches.size // program.patch_nodes
    for c in range(program.channels):
        place = (c * PATCH + CENTRE) * stride + grid.guard + tile * TILE
        store(d_patches, place, add(load(d_patches, place), load(d_nodes, (program.nodes + c) * TILE)))
