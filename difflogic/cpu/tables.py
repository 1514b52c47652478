"""Everything compiled code must know about a circuit and a grid, as arrays: made once, in NumPy.

Compiled functions take these tuples field by field, so a field's type must never change: int64 numbers,
C-contiguous arrays of the types named here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from difflogic.circuit import Circuit
from difflogic.cpu.vectors import TILE
from difflogic.layout import Layout, flat_layout
from difflogic.shape import Shape
from difflogic.wiring import PATCH

Array = npt.NDArray[Any]

LINE = 64
"""Bytes of a cache line, and of the widest vector register."""


class Program(NamedTuple):
    """One circuit. Rows are given by their first element: row `n` of a tile's scratch begins at `n * TILE`."""

    channels: int
    patch_nodes: int
    nodes: int
    segments: Array
    """int64 `[S, 4]`, in an order in which no gate reads a later one: first gate, gates, first instance, replicas."""
    wires: Array
    """uint32 `[I, 2]`: the rows that an instance reads."""
    edge_starts: Array
    """uint32 `[N + 1]`: the edges of node `n`, one per gate input that reads it, are `[n]` to `[n + 1]`."""
    edges: Array
    """uint32 `[E, 2]`: the row of the reading gate, and the row of its other input."""
    edge_of: Array
    """uint32 `[I, 2]`: the edges of an instance's inputs."""
    gate_starts: Array
    """uint32 `[G + 1]`: the instances of gate `g` are `[g]` to `[g + 1]`."""


class Grid(NamedTuple):
    """One batch of grids. A row of cells has a guard before it, so that shifted reads stay inside."""

    batch: int
    cells_per_grid: int
    cells: int
    tiles: int
    steps: int
    loss_channels: int
    guard: int
    shifts: Array
    """int64 `[9]`: a cell's neighbour at patch position `f` is `shifts[f]` cells on..."""
    lanes: Array
    """uint64 `[9, tiles]`: ...where the lane's bit is 1. Elsewhere it is outside the grid, or one of these:"""
    wrapped_starts: Array
    """int64 `[9 * tiles + 1]`: the wrapped lanes of `f` in a tile are `[f * tiles + tile]` to the next."""
    wrapped: Array
    """int64 `[., 2]`: a lane, and the cell that is its neighbour."""

    @property
    def stride(self) -> int:
        """Elements of a row of cells, an odd number of cache lines: rows must not compete for the same ones."""
        lines = -(-(2 * self.guard + self.tiles * TILE) * 4 // LINE)
        return (lines | 1) * LINE // 4


def make_program(circuit: Circuit) -> Program:
    """The program of a circuit; its logits play no part."""
    layout = flat_layout(circuit)
    wires = layout.wires.astype(np.int64)
    read = wires.reshape(-1)  # edge 2*i + side reads this node
    order = np.argsort(read, kind="stable")
    instances, sides = order // 2, order % 2
    edges = np.stack([layout.patch_nodes + instances, wires[instances, 1 - sides]], axis=1)
    edge_of = np.empty(len(read), dtype=np.int64)
    edge_of[order] = np.arange(len(read))
    return Program(
        channels=layout.channels,
        patch_nodes=layout.patch_nodes,
        nodes=layout.nodes,
        segments=_segments(layout, len(circuit.perceive), circuit.kernels),
        wires=(wires * TILE).astype(np.uint32),
        edge_starts=np.searchsorted(read[order], np.arange(layout.nodes + 1)).astype(np.uint32),
        edges=(edges * TILE).astype(np.uint32),
        edge_of=edge_of.reshape(-1, 2).astype(np.uint32),
        gate_starts=np.searchsorted(layout.instance_gates, np.arange(layout.gates + 1)).astype(np.uint32),
    )


def _segments(layout: Layout, depth: int, kernels: int) -> Array:
    """Perception kernel by kernel, whose few rows stay in the L1 cache, then the update network's levels."""
    rows = []
    for kernel in range(kernels):
        for level in layout.levels[:depth]:
            gates = level.count // level.replicas // kernels
            first_instance = level.first_instance + kernel * gates * level.replicas
            rows.append((level.first_gate + kernel * gates, gates, first_instance, level.replicas))
    rows += [(level.first_gate, level.count, level.first_instance, 1) for level in layout.levels[depth:]]
    return np.array(rows, dtype=np.int64)


def make_grid(shape: Shape) -> Grid:
    """The tables of a batch of grids."""
    tiles = -(-shape.cells // TILE)
    near = neighbours(shape)
    shifts = np.array([(f // 3 - 1) * shape.width + f % 3 - 1 for f in range(PATCH)])
    straight = (near >= 0) & (near == np.arange(shape.cells) + shifts[:, None])
    lanes = np.zeros((PATCH, tiles * TILE), dtype=np.uint64)
    lanes[:, : shape.cells] = straight
    bits = (lanes.reshape(PATCH, tiles, TILE) << np.arange(TILE, dtype=np.uint64)).sum(axis=2, dtype=np.uint64)
    position, cell = np.nonzero((near >= 0) & ~straight)
    counts = np.bincount(position * tiles + cell // TILE, minlength=PATCH * tiles)
    return Grid(
        batch=shape.batch,
        cells_per_grid=shape.cells_per_grid,
        cells=shape.cells,
        tiles=tiles,
        steps=shape.steps,
        loss_channels=shape.loss_channels,
        guard=-(-(shape.width + 1) * 4 // LINE) * LINE // 4,
        shifts=shifts.astype(np.int64),
        lanes=bits,
        wrapped_starts=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        wrapped=np.stack([cell % TILE, near[position, cell]], axis=1).astype(np.int64),
    )


def neighbours(shape: Shape) -> Array:
    """int64 `[9, cells]`: the cell at patch position `f = 3*dy + dx`, -1 where it is outside the grid."""
    cells = np.arange(shape.cells)
    row, column = cells // shape.width % shape.height, cells % shape.width
    base = cells - row * shape.width - column
    near = np.empty((PATCH, shape.cells), dtype=np.int64)
    for f in range(PATCH):
        y, x = row + f // 3 - 1, column + f % 3 - 1
        inside = (y >= 0) & (y < shape.height) & (x >= 0) & (x < shape.width)
        there = base + y % shape.height * shape.width + x % shape.width
        near[f] = there if shape.periodic else np.where(inside, there, -1)
    return near


def aligned(*shape: int, dtype: npt.DTypeLike = np.float32) -> Array:
    """Zeros that begin at a cache line: a vector that straddles two is slow."""
    count = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.zeros(count + LINE, dtype=np.uint8)
    start = -raw.ctypes.data % LINE
    return raw[start : start + count].view(dtype).reshape(shape)
