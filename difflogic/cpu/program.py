"""A circuit as compiled code reads it: made once, in NumPy."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from difflogic.cpu.codegen.vectors import TILE
from difflogic.engine.shape import Array
from difflogic.model.circuit import Circuit
from difflogic.model.layout import Layout, flat_layout

SEGMENT = 5
"""Numbers per segment."""
FIRST_GATE, GATES, FIRST_INSTANCE, REPLICAS, ACCUMULATES = range(SEGMENT)
RECORD = 6
"""Numbers per instance."""
A, B, SLOT_A, SLOT_B, SLOTS, SLOTS_END = range(RECORD)


class Program(NamedTuple):
    """One circuit. A row is named by its first element: row `n` of a scratch array begins at `n * TILE`.

    Forward, every node has a row. Backward, an instance sends the adjoints of its two inputs to two *slots*, each a
    row; those of one node lie side by side, and the node's adjoint is their sum. Nodes with many readers, the patch
    and the perception outputs, have one row each instead, an *accumulator*, to which every reader adds.
    """

    # An example: one channel, one perception kernel. Nodes 0 to 8 are the patch. Perception is gate 0 of (1, 3), gate 1
    # of (4, 4) and gate 2 of both. The update network is gate 3 of (4, 11), the cell itself and the perception output,
    # gate 4 of (11, 11), and gate 5 of both. Slots 0 to 8 accumulate for the patch and 9 for node 11; 10 stays 0; 11 is
    # the output's. In rows and slots, not yet times TILE, the records are
    #
    #     node   a   b    to a  to b   own, end
    #        9   1   3       1     3     12, 13
    #       10   4   4       4     4     13, 14
    #       11   9  10      12    13      9, 10
    #       12   4  11       4     9     12, 13    <- slots 12 and 13 once more: nodes 12 and 13 have read them
    #       13  11  11       9     9     13, 14       before node 11 fills them for nodes 9 and 10
    #       14  12  13      12    13     11, 12
    #
    # Backward, from the last segment to the first: node 14 finds its adjoint in slot 11 and sends two parts to slots 12
    # and 13; nodes 12 and 13 take them from there and add theirs to accumulators 4 and 9, and so on to the patch.

    channels: int
    outputs: int
    """As many as channels but in a feed-forward circuit."""
    patch_nodes: int
    nodes: int
    segments: Array
    """int64 `[S * SEGMENT]`, in an order in which no gate reads a later one. In a segment that accumulates, every
    input is an accumulator's; in others none is."""
    records: Array
    """uint32 `[I * RECORD]`: the rows that an instance reads, the slots it sends to, its own from first to end."""
    gate_starts: Array
    """uint32 `[G + 1]`: the instances of gate `g` are `[g]` to `[g + 1]`."""
    accumulators: int
    """Their number; they are the first slots, the patch nodes' the first of all."""
    output_slots: int
    """The slot of the first output node; an output has one slot, and the loss or the next step fills it."""
    slots: int
    """How many there are."""


def make_program(circuit: Circuit) -> Program:
    """The program of a circuit; its logits play no part."""
    layout = flat_layout(circuit)
    # Soft circuits are not compiled one by one: that would take Numba half a minute for each. One loop, compiled once,
    # goes through these records, and each turn of it is a gate on 32 cells. Gate 3 of the example above, which reads
    # nodes 4 and 11, is the record (4*32, 11*32, 4*32, 9*32, 12*32, 13*32), since TILE is 32. Forward, `compute_nodes`
    # makes of it
    #
    #     row 12 (at 384) <- (cab*a + cb)*b + (ca*a + c0)          a is row 4 (at 128), b is row 11 (at 352)
    #
    # which is four broadcasts, two loads, three fused multiply-adds and a store to each register of the row. Backward,
    # `_instance` and `_gates_backward` make of it, d being slot 12, alone, since slot 13 is the end,
    #
    #     slot 4 (at 128) <- slot 4 + d * (cab*b + ca)             an accumulator, like
    #     slot 9 (at 288) <- slot 9 + d * (cab*a + cb)             this one
    #     moments 12 to 15 get the sums of d, d*a, d*b and d*a*b over the 32 cells
    segments = _segments(layout, len(circuit.perceive), circuit.kernels)
    accumulated = _accumulated(layout, len(circuit.perceive))
    sent, own, slots = _slots(layout, segments, accumulated)
    records = np.concatenate([layout.wires.astype(np.int64), sent, own], axis=1) * TILE
    return Program(
        channels=layout.channels,
        outputs=layout.outputs,
        patch_nodes=layout.patch_nodes,
        nodes=layout.nodes,
        segments=segments.reshape(-1),
        records=records.astype(np.uint32).reshape(-1),
        gate_starts=np.searchsorted(layout.instance_gates, np.arange(layout.gates + 1)).astype(np.uint32),
        accumulators=int(accumulated.sum()),
        output_slots=int(own[-layout.outputs, 0]),
        slots=slots,
    )


def _segments(layout: Layout, depth: int, kernels: int) -> Array:
    """Perception kernel by kernel, whose few rows stay in the L1 cache, then the update network's levels."""
    # The layout has all kernels' gates of a layer side by side. Taken kernel by kernel instead, a gate's inputs are
    # still in the cache when it reads them.
    rows = []
    for kernel in range(kernels):
        for index, level in enumerate(layout.levels[:depth]):
            gates = level.count // level.replicas // kernels
            first_instance = level.first_instance + kernel * gates * level.replicas
            rows.append((level.first_gate + kernel * gates, gates, first_instance, level.replicas, index == 0))
    for index, level in enumerate(layout.levels[depth:]):
        rows.append((level.first_gate, level.count, level.first_instance, 1, index == 0))
    return np.array(rows, dtype=np.int64)


def _accumulated(layout: Layout, depth: int) -> Array:
    """bool `[N]`: the patch and the perception outputs, which the first gates of both networks read."""
    nodes = np.zeros(layout.nodes, dtype=np.bool_)
    nodes[: layout.patch_nodes] = True
    if depth:
        outputs = layout.levels[depth - 1]
        first = layout.patch_nodes + outputs.first_instance
        nodes[first : first + outputs.count] = True
    return nodes


def _slots(layout: Layout, segments: Array, accumulated: Array) -> tuple[Array, Array, int]:
    """int64 `[I, 2]` where instances send, `[I, 2]` their own first slot and end, and the number of slots.

    After the accumulators come one slot that stays 0, for nodes that no gate reads, the outputs', and all others.
    """
    kept = int(accumulated.sum())
    nothing, outputs, free = kept, kept + 1, kept + 1 + layout.outputs
    read = layout.wires.reshape(-1).astype(np.int64)  # edge 2*i + side reads this node
    degree = np.bincount(read, minlength=layout.nodes)
    degree[accumulated] = 1  # however many readers there are
    first = np.full(layout.nodes, nothing)
    first[accumulated] = np.arange(kept)
    first[layout.nodes - layout.outputs :] = outputs + np.arange(layout.outputs)
    starts, slots = _blocks(layout, segments, np.where(accumulated, 0, degree), free)
    # Outputs are read by no gate, but by the loss or the next step: they stay where they were put above.
    elsewhere = (degree > 0) & ~accumulated
    first[elsewhere] = starts[elsewhere]
    # Each edge of a node sends to a slot of its own, counted from the node's first: no reader has to know whether
    # another was there before, and none reads what it only wants to add to.
    order = np.argsort(read, kind="stable")
    rank = np.empty_like(read)  # of an edge among those of its node
    rank[order] = np.arange(len(read)) - np.searchsorted(read[order], read[order])
    sent = first[read] + np.where(accumulated[read], 0, rank)
    own = first[layout.patch_nodes :]
    return sent.reshape(-1, 2), np.stack([own, own + np.maximum(degree[layout.patch_nodes :], 1)], axis=1), slots


def _blocks(layout: Layout, segments: Array, degree: Array, free: int) -> tuple[Array, int]:
    """Each node's first slot, and the end of all: a segment's slots are in use from its readers' turn to its own.

    What is free again is taken anew at once, so that slots stay in the nearest cache.
    """
    ends = np.append(segments[:, FIRST_INSTANCE] + segments[:, GATES] * segments[:, REPLICAS], layout.instances)
    segment_of = np.empty(layout.nodes, dtype=np.int64)
    segment_of[: layout.patch_nodes] = -1
    for segment, row in enumerate(segments):
        segment_of[layout.patch_nodes + row[FIRST_INSTANCE] : layout.patch_nodes + ends[segment]] = segment
    starts = np.zeros(layout.nodes, dtype=np.int64)
    in_use: list[tuple[int, int, int]] = []  # first slot, end, segment
    top = free
    # In the order of the backward pass: a segment's readers come before it and fill its slots; when its own turn is
    # over, nobody reads these again.
    for segment in range(len(segments) - 1, -1, -1):
        span = slice(segments[segment, FIRST_INSTANCE], ends[segment])
        for source in np.unique(segment_of[layout.wires[span]]):
            nodes = np.flatnonzero(segment_of == source)
            size = int(degree[nodes].sum())
            if source < 0 or size == 0 or any(source == owner for _, _, owner in in_use):
                continue
            begin = _gap(in_use, size, free)
            in_use.append((begin, begin + size, int(source)))
            starts[nodes] = begin + np.cumsum(degree[nodes]) - degree[nodes]
            top = max(top, begin + size)
        in_use = [block for block in in_use if block[2] != segment]
    return starts, top


def _gap(in_use: list[tuple[int, int, int]], size: int, begin: int) -> int:
    """The first place for `size` slots between those in use."""
    for first, end, _ in sorted(in_use):
        if begin + size <= first:
            break
        begin = max(begin, end)
    return begin
