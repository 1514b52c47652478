"""A circuit as compiled code reads it: made once, in NumPy."""

from typing import NamedTuple

import numpy as np

from difflogic.core.gates import GATE_COUNT
from difflogic.core.wiring import BLOCK
from difflogic.cpu.codegen.vectors import TILE
from difflogic.engine.shape import Array
from difflogic.model.circuit import Circuit
from difflogic.model.layout import Layout, flat_layout

SEGMENT = 5
"""Numbers per segment."""
FIRST_GATE, GATES, FIRST_INSTANCE, REPLICAS, ALONE = range(SEGMENT)
RECORD = 5
"""Numbers per instance."""
A, B, SLOT_A, SLOT_B, SLOT = range(RECORD)


class Program(NamedTuple):
    """One circuit. A row is named by its first element: row `n` of a scratch array begins at `n * TILE`.

    Forward, every node has a row. Backward, a node has a *slot*, a row to which its readers add their parts of its
    adjoint. Its own turn takes the sum, and leaves zeros for the node that has the slot after it.
    """

    # An example: one channel, one perception kernel. Nodes 0 to 8 are the patch. Perception is gate 0 of (1, 3), gate 1
    # of (4, 4) and gate 2 of both. The update network is gate 3 of (4, 11), the cell itself and the perception output,
    # gate 4 of (11, 11), and gate 5 of both. Slots 0 to 8 are the patch's; 9 stays 0; 10 is the output's. In rows and
    # slots, not yet times TILE, the records are
    #
    #     node   a   b    to a  to b   own
    #        9   1   3       1     3    11
    #       10   4   4       4     4    12
    #       11   9  10      11    12    13
    #       12   4  11       4    13    11    <- slots 11 and 12 once more: nodes 12 and 13 have emptied them
    #       13  11  11      13    13    12       before node 11 fills them for nodes 9 and 10
    #       14  12  13      11    12    10
    #
    # Backward, from the last segment to the first: node 14 finds its adjoint in slot 10 and sends two parts to slots 11
    # and 12; nodes 12 and 13 take them from there and add theirs to slots 4 and 13, and so on to the patch.

    channels: int
    outputs: int
    """As many as channels but in a feed-forward circuit."""
    patch_nodes: int
    nodes: int
    segments: Array
    """int64 `[S * SEGMENT]`, in an order in which no gate reads a later one. Where ALONE is 1, nobody else reads what
    the segment's gates read, so that they need not add to what is in a slot."""
    records: Array
    """uint32 `[I * RECORD]`: the rows that an instance reads, the slots it sends to, its own."""
    gate_starts: Array
    """uint32 `[G + 1]`: the instances of gate `g` are `[g]` to `[g + 1]`."""
    output_slots: int
    """The slot of the first output node; the loss or the next step fills it. The patch nodes' are the first of all."""
    slots: int
    """How many there are."""
    gates: int
    candidates: int
    """Candidates of each input, k; 1 if wiring is fixed."""
    choices: Array
    """uint32 `[2 * I * 2k]`: the rows of each instance's candidates, of a and then of b, and as many slots; or `[0]`.
    Inputs then have rows of their own after the nodes', two for each instance, which the records name."""
    wire_moments: int
    """The place in moments where those of candidates begin, after those of gates."""


def make_program(circuit: Circuit) -> Program:
    """The program of a circuit; its logits play no part."""
    layout = flat_layout(circuit)
    # Soft circuits are not compiled one by one: that would take Numba half a minute for each. One loop, compiled once,
    # goes through these records, and each turn of it is a gate on 32 cells. Gate 3 of the example above, which reads
    # nodes 4 and 11, is the record (4*32, 11*32, 4*32, 13*32, 11*32), since TILE is 32. Forward, `compute_nodes`
    # makes of it
    #
    #     row 12 (at 384) <- (cab*a + cb)*b + (ca*a + c0)          a is row 4 (at 128), b is row 11 (at 352)
    #
    # which is four broadcasts, two loads, three fused multiply-adds and a store to each register of the row. Backward,
    # `_gates_backward` makes of it, d being slot 11, in which it leaves zeros,
    #
    #     slot 4 (at 128) <- slot 4 + d * (cab*b + ca)
    #     slot 13 (at 416) <- slot 13 + d * (cab*a + cb)
    #     moments 12 to 15 get the sums of d, d*a, d*b and d*a*b over the 32 cells
    levels = _segments(layout, len(circuit.perceive), circuit.kernels)
    slots, count = _slots(layout, levels)
    read, sent, choices = layout.wires.astype(np.int64), slots[layout.wires], np.zeros(0)
    segments = np.column_stack([levels, _alone(layout, levels)])
    if layout.candidates > 1:
        choices = np.stack([read, sent]) * TILE
        # Rows of inputs have no other reader. Backward they hold adjoints, which so have slots there.
        read = sent = layout.nodes + np.arange(2 * layout.instances).reshape(-1, 2)
        segments = np.concatenate([_blocks_of(*level) for level in levels])
    records = np.concatenate([read, sent, slots[layout.patch_nodes :, None]], axis=1) * TILE
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
    """A segment in blocks of gates that share their candidates, int64 `[., SEGMENT]`."""
    begins = np.arange(0, gates, BLOCK)
    counts, of_all = np.minimum(BLOCK, gates - begins), np.ones_like(begins)
    return np.stack(
        [first_gate + begins, counts, first_instance + begins * replicas, replicas * of_all, of_all], axis=1
    )


def _segments(layout: Layout, depth: int, kernels: int) -> Array:
    """Perception kernel by kernel, whose few rows stay in the L1 cache, then the update network's levels."""
    # The layout has all kernels' gates of a layer side by side. Taken kernel by kernel instead, a gate's inputs are
    # still in the cache when it reads them.
    rows = []
    for kernel in range(kernels):
        for level in layout.levels[:depth]:
            gates = level.count // level.replicas // kernels
            first_instance = level.first_instance + kernel * gates * level.replicas
            rows.append((level.first_gate + kernel * gates, gates, first_instance, level.replicas))
    rows += [(level.first_gate, level.count, level.first_instance, 1) for level in layout.levels[depth:]]
    return np.array(rows, dtype=np.int64)


def _ends(segments: Array) -> Array:
    """int64 `[S]`: the instance behind each segment's last."""
    ends: Array = segments[:, FIRST_INSTANCE] + segments[:, GATES] * segments[:, REPLICAS]
    return ends


def _alone(layout: Layout, segments: Array) -> Array:
    """bool `[S]`: whether a segment's inputs, none of them the patch's, have no other reader."""
    readers = np.bincount(layout.wires.reshape(-1), minlength=layout.nodes)
    shared = (readers > 1) | (np.arange(layout.nodes) < layout.patch_nodes)
    spans = zip(segments[:, FIRST_INSTANCE], _ends(segments), strict=True)
    return np.array([not shared[layout.wires[first:end]].any() for first, end in spans])


def _slots(layout: Layout, segments: Array) -> tuple[Array, int]:
    """int64 `[N]`, each node's slot, and how many there are.

    After those of the patch come one slot that stays 0, for nodes that no gate reads, the outputs', and all others.
    """
    nothing, outputs = layout.patch_nodes, layout.patch_nodes + 1
    slots, count = _blocks(layout, segments, outputs + layout.outputs)
    slots[: layout.patch_nodes] = np.arange(layout.patch_nodes)
    # Outputs are read by no gate, but by the loss or the next step.
    slots[layout.nodes - layout.outputs :] = outputs + np.arange(layout.outputs)
    return np.where(slots < 0, nothing, slots), count


def _blocks(layout: Layout, segments: Array, free: int) -> tuple[Array, int]:
    """Each gate's slot, -1 where nobody reads it, and the end of all: slots of a segment are in use from its readers'
    turn to its own.

    What is free again is taken anew at once, so that slots stay in the nearest cache.
    """
    ends = _ends(segments)
    segment_of = np.full(layout.nodes, -1)
    for segment, (first, end) in enumerate(zip(segments[:, FIRST_INSTANCE], ends, strict=True)):
        segment_of[layout.patch_nodes + first : layout.patch_nodes + end] = segment
    read = np.bincount(layout.wires.reshape(-1), minlength=layout.nodes) > 0
    slots = np.full(layout.nodes, -1)
    in_use: list[tuple[int, int, int]] = []  # first slot, end, segment
    top = free
    # In the order of the backward pass: a segment's readers come before it and fill its slots; when its own turn is
    # over, nobody reads these again.
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
    """The first place for `size` slots between those in use."""
    for first, end, _ in sorted(in_use):
        if begin + size <= first:
            break
        begin = max(begin, end)
    return begin
