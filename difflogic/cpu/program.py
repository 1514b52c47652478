"""Encode a circuit as the arrays that compiled code interprets; this is done once, in NumPy."""

from typing import NamedTuple

import numpy as np

from difflogic.core.gates import GATE_COUNT
from difflogic.core.wiring import BLOCK
from difflogic.cpu.codegen.vectors import TILE
from difflogic.engine.shape import Array
from difflogic.model.circuit import Circuit
from difflogic.model.layout import Layout, flat_layout

SEGMENT = 5
"""Number of integers per segment: first gate, number of gates, first instance, replicas per gate, and ALONE."""
FIRST_GATE, GATES, FIRST_INSTANCE, REPLICAS, ALONE = range(SEGMENT)
RECORD = 5
"""Number of integers per gate instance: the rows of both inputs, the slots of both inputs, and its own slot."""
A, B, SLOT_A, SLOT_B, SLOT = range(RECORD)


class Program(NamedTuple):
    """Encoded circuit. A row is identified by the index of its first element: `n * TILE` for row n of an array.

    In the forward pass every node has a row. In the backward pass a node has a *slot*: a row to which the gates that
    read the node add their parts of its adjoint. When the node itself is processed, the sum is read and replaced by
    zeros, for the node that uses the slot next.
    """

    # Example: one channel, one perception kernel. Nodes 0 to 8 are the patch. Perception has gate 0 with inputs (1, 3),
    # gate 1 with (4, 4), and gate 2 that reads both. The update network has gate 3 with inputs (4, 11), the cell itself
    # and the perception output, gate 4 with (11, 11), and gate 5 that reads both. Slots 0 to 8 belong to the patch,
    # slot 9 stays 0, and slot 10 belongs to the output. As numbers of rows and slots, before multiplication by TILE,
    # the records are
    #
    #     node   a   b    slot a  slot b   own slot
    #        9   1   3         1       3         11
    #       10   4   4         4       4         12
    #       11   9  10        11      12         13
    #       12   4  11         4      13         11    <- slots 11 and 12 again: nodes 12 and 13 have emptied them
    #       13  11  11        13      13         12       before node 11 fills them for nodes 9 and 10
    #       14  12  13        11      12         10
    #
    # The backward pass goes from the last segment to the first: node 14 reads its adjoint from slot 10 and adds two
    # parts to slots 11 and 12; nodes 12 and 13 read these and add their own parts to slots 4 and 13, and so on to the
    # patch.

    channels: int
    outputs: int
    """Number of output nodes: the channels of an automaton, the outputs of a feed-forward circuit."""
    patch_nodes: int
    nodes: int
    segments: Array
    """int64 `[S * SEGMENT]`: segments in topological order. If ALONE is 1, each node that the segment reads has a
    single reader, so that the backward pass stores adjoints in slots instead of adding them."""
    records: Array
    """uint32 `[I * RECORD]`: for each instance the rows that it reads, the slots of these inputs, and its own slot."""
    gate_starts: Array
    """uint32 `[G + 1]`: gate `g` has the instances from `gate_starts[g]` to `gate_starts[g + 1]`."""
    output_slots: int
    """Slot of the first output node, filled by the loss or the next step. The first slots belong to the patch nodes."""
    slots: int
    """Number of slots, each a row of TILE floats."""
    gates: int
    candidates: int
    """Number of candidates of each input, k; 1 if wiring is fixed."""
    choices: Array
    """uint32 `[2 * I * 2k]`: the rows of each instance's candidates, of input a and then b, then their slots; or `[0]`.
    With candidates, each input has a separate row after the rows of the nodes, two per instance, and records refer to
    these rows."""
    wire_moments: int
    """Index of the first moment of a candidate, after the moments of the gates."""


def make_program(circuit: Circuit) -> Program:
    """Return the encoded wiring of a circuit; its logits are not used."""
    layout = flat_layout(circuit)
    # Soft circuits are interpreted: compiling each would take Numba half a minute. One loop, compiled once, runs over
    # these records, and each iteration computes a gate on 32 cells. Gate 3 of the example above, which reads nodes 4
    # and 11, is the record (4*32, 11*32, 4*32, 13*32, 11*32), since TILE is 32. In the forward pass `compute_nodes`
    # computes
    #
    #     row 12 (at 384) <- (cab*a + cb)*b + (ca*a + c0)          a is row 4 (at 128), b is row 11 (at 352)
    #
    # with four broadcasts, and two loads, three fused multiply-adds and a store for each register of the row. In the
    # backward pass `_gates_backward` reads the adjoint d from slot 11, leaves zeros there, and computes
    #
    #     slot 4 (at 128) <- slot 4 + d * (cab*b + ca)
    #     slot 13 (at 416) <- slot 13 + d * (cab*a + cb)
    #     moments 12 to 15 <- moments 12 to 15 + the sums of d, d*a, d*b and d*a*b over the 32 cells
    levels = _segments(layout, len(circuit.perceive), circuit.kernels)
    slots, count = _slots(layout, levels)
    inputs, input_slots, choices = layout.wires.astype(np.int64), slots[layout.wires], np.zeros(0)
    segments = np.column_stack([levels, _alone(layout, levels)])
    if layout.candidates > 1:
        choices = np.stack([inputs, input_slots]) * TILE
        # An input's row has one reader. So in the backward pass the same row serves as the slot of the adjoint.
        inputs = input_slots = layout.nodes + np.arange(2 * layout.instances).reshape(-1, 2)
        segments = np.concatenate([_blocks_of(*level) for level in levels])
    records = np.concatenate([inputs, input_slots, slots[layout.patch_nodes :, None]], axis=1) * TILE
    return Program(
        channels=layout.channels,
        outputs=layout.outputs,
        patch_nodes=layout.patch_nodes,
        nodes=layout.nodes,
        segments=segments.reshape(-1),
        records=records.astype(np.uint32).reshape(-1),
        gate_starts=np.searchsorted(layout.instance_gates, np.arange(layout.gates + 1)).astype(np.uint32),
        output_slots=int(slots[-layout.outputs]),
        slots=count,
        gates=layout.gates,
        candidates=layout.candidates,
        choices=choices.astype(np.uint32).reshape(-1),
        wire_moments=-(-4 * layout.gates // GATE_COUNT) * GATE_COUNT,
    )


def _blocks_of(first_gate: int, gates: int, first_instance: int, replicas: int) -> Array:
    """Split a segment into blocks of gates that share their candidates, int64 `[blocks, SEGMENT]`."""
    begins = np.arange(0, gates, BLOCK)
    counts, ones = np.minimum(BLOCK, gates - begins), np.ones_like(begins)
    return np.stack([first_gate + begins, counts, first_instance + begins * replicas, replicas * ones, ones], axis=1)


def _segments(layout: Layout, depth: int, kernels: int) -> Array:
    """Return the segments: perception kernel by kernel, then the levels of the update network."""
    # In the layout a layer contains the gates of all kernels. Ordered by kernel, there are fewer rows between a
    # gate and its readers, so that these find its row in the L1 cache.
    rows = []
    for kernel in range(kernels):
        for level in layout.levels[:depth]:
            gates = level.count // level.replicas // kernels
            first_instance = level.first_instance + kernel * gates * level.replicas
            rows.append((level.first_gate + kernel * gates, gates, first_instance, level.replicas))
    rows += [(level.first_gate, level.count, level.first_instance, 1) for level in layout.levels[depth:]]
    return np.array(rows, dtype=np.int64)


def _ends(segments: Array) -> Array:
    """Return the end of each segment, int64 `[S]`: the instance after its last one."""
    ends: Array = segments[:, FIRST_INSTANCE] + segments[:, GATES] * segments[:, REPLICAS]
    return ends


def _alone(layout: Layout, segments: Array) -> Array:
    """Return bool `[S]`: True for segments that read no patch node and no node that has several readers."""
    readers = np.bincount(layout.wires.reshape(-1), minlength=layout.nodes)
    shared = (readers > 1) | (np.arange(layout.nodes) < layout.patch_nodes)
    spans = zip(segments[:, FIRST_INSTANCE], _ends(segments), strict=True)
    return np.array([not shared[layout.wires[first:end]].any() for first, end in spans])


def _slots(layout: Layout, segments: Array) -> tuple[Array, int]:
    """Return the slot of each node, int64 `[N]`, and the number of slots.

    The slots are in this order: those of the patch nodes, one that stays 0 for nodes that no gate reads, those of the
    outputs, and all others.
    """
    nothing, outputs = layout.patch_nodes, layout.patch_nodes + 1
    slots, count = _blocks(layout, segments, outputs + layout.outputs)
    slots[: layout.patch_nodes] = np.arange(layout.patch_nodes)
    # No gate reads the outputs, but the loss or the next step fills their slots.
    slots[layout.nodes - layout.outputs :] = outputs + np.arange(layout.outputs)
    return np.where(slots < 0, nothing, slots), count


def _blocks(layout: Layout, segments: Array, free: int) -> tuple[Array, int]:
    """Allocate slots from `free` on: return each node's slot (-1 if it has none), and the total number of slots.

    The slots of a segment are in use from the first backward pass of a reader to that of the segment itself. Free slots
    are reused immediately, so that all slots stay in the L1 cache.
    """
    ends = _ends(segments)
    segment_of = np.full(layout.nodes, -1)
    for segment, (first, end) in enumerate(zip(segments[:, FIRST_INSTANCE], ends, strict=True)):
        segment_of[layout.patch_nodes + first : layout.patch_nodes + end] = segment
    read = np.bincount(layout.wires.reshape(-1), minlength=layout.nodes) > 0
    slots = np.full(layout.nodes, -1)
    in_use: list[tuple[int, int, int]] = []  # first slot, end, segment
    top = free
    # In the order of the backward pass: the readers of a segment come before it and fill its slots, and once it has
    # been processed itself, its slots are free.
    for segment in range(len(segments) - 1, -1, -1):
        span = slice(segments[segment, FIRST_INSTANCE], ends[segment])
        for source in np.unique(segment_of[layout.wires[span]]):
            if source < 0 or any(source == owner for _, _, owner in in_use):
                continue
            nodes = np.flatnonzero((segment_of == source) & read)
            begin = _gap(in_use, len(nodes), free)
            in_use.append((begin, begin + len(nodes), int(source)))
            slots[nodes] = begin + np.arange(len(nodes))
            top = max(top, begin + len(nodes))
        in_use = [block for block in in_use if block[2] != segment]
    return slots, top


def _gap(in_use: list[tuple[int, int, int]], size: int, begin: int) -> int:
    """Return the first slot, at least `begin`, of a gap of `size` slots between the ranges `in_use`."""
    for first, end, _ in sorted(in_use):
        if begin + size <= first:
            break
        begin = max(begin, end)
    return begin
