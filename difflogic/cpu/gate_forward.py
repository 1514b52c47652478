"""One CA step of the soft circuit on one tile."""

from __future__ import annotations

from difflogic.cpu.compiled import inner
from difflogic.cpu.grid import write_patches
from difflogic.cpu.tables import Array, Grid, Program
from difflogic.cpu.vectors import TILE, fma, load, splat, store, where


@inner
def gate_forward(
    program: Program, grid: Grid, at: int, tile: int, coefficients: Array, masks: Array, states: Array, nodes: Array
) -> None:
    """`states[at] -> states[at+1]`, both `[C * stride]`, in the tile's columns; every node's row stays in `nodes`.

    `masks [T, tiles * TILE]`, or empty: where 0, a cell keeps its old state.
    """
    compute_nodes(program, grid, tile, coefficients, states[at], nodes)
    stride = states.shape[1] // program.channels
    for c in range(program.channels):
        place = c * stride + grid.guard + tile * TILE
        new = load(nodes, (program.nodes - program.channels + c) * TILE)
        if masks.size:
            new = where(load(masks[at], tile * TILE), new, load(states[at], place))
        store(states[at + 1], place, new)


@inner
def compute_nodes(program: Program, grid: Grid, tile: int, coefficients: Array, state: Array, nodes: Array) -> None:
    """Every node's row: a gate is `c0 + ca*a + cb*b + cab*a*b`."""
    write_patches(grid, tile, program.channels, state, nodes)
    for segment in range(len(program.segments)):
        first_gate, gates, instance, replicas = program.segments[segment]
        for gate in range(first_gate, first_gate + gates):
            c0, ca = splat(coefficients[gate, 0]), splat(coefficients[gate, 1])
            cb, cab = splat(coefficients[gate, 2]), splat(coefficients[gate, 3])
            for _ in range(replicas):
                a, b = load(nodes, program.wires[instance, 0]), load(nodes, program.wires[instance, 1])
                store(nodes, (program.patch_nodes + instance) * TILE, fma(fma(cab, a, cb), b, fma(ca, a, c0)))
                instance += 1
