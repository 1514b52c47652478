"""The flat layout: a circuit as levels of gate instances over one vector of nodes per cell.

Every cell owns `nodes` values: first the patch, `channel * 9 + f`; then the output of every gate
*instance*. An update gate is one instance; a perception gate is C instances, one per channel
(channel fastest), that share coefficients. A level is a set of instances that only read nodes of
earlier levels, so a step is: patches, level after level, and the last C nodes are the new state.

Backward, an instance sends its two input adjoints to two *slots*. Slots are numbered so that those of
one node lie side by side: a node's adjoint is the sum over `[start, end)`, a gather without indices.
Slots of a level are read while the level is processed and are then free, so levels alternate between
two regions; the slots of the patch nodes have a region of their own.

A circuit without perception has a patch of one value per channel, and its last nodes are the outputs.

Everything here is NumPy, made once per circuit, and the same for every engine.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic.core import wiring
from difflogic.model.circuit import Circuit

Index = npt.NDArray[np.uint32]


@dataclass(frozen=True)
class Level:
    """`count` instances from `first_instance` on; instance `i` of the level is gate `first_gate + i // replicas`."""

    first_instance: int
    count: int
    first_gate: int
    replicas: int


@dataclass(frozen=True, eq=False)
class Layout:
    """Flat wiring of one circuit; `patch_nodes = patch*C`, node of instance `i` is `patch_nodes + i`."""

    channels: int
    gates: int
    levels: tuple[Level, ...]
    wires: Index
    """uint32 `[instances, 2]`: the nodes that input a and input b read; of k candidates `[instances, 2, k]`."""
    kernels: int = 1
    perception_levels: int = 0
    """How many of the levels are perception; theirs come first."""
    patch: int = wiring.PATCH
    """Values of each channel that a cell reads: 9, or 1 without perception."""

    @property
    def patch_nodes(self) -> int:
        return self.patch * self.channels

    @property
    def outputs(self) -> int:
        """Instances of the last level: the last nodes are the next state, or what a feed-forward circuit gives."""
        return self.levels[-1].count

    @property
    def instances(self) -> int:
        return len(self.wires)

    @property
    def nodes(self) -> int:
        return self.patch_nodes + self.instances

    @property
    def parameters(self) -> int:
        """Rows of 16 parameters, P: of gates, and of the logits of wires."""
        return self.gates + (-(-2 * self.candidates * self.gates // 16) if self.candidates > 1 else 0)

    @property
    def candidates(self) -> int:
        return self.wires.shape[2] if self.wires.ndim > 2 else 1

    def wire_logits(self, flat: npt.NDArray[Any]) -> npt.NDArray[Any] | None:
        """Return those of `flat [P, 16]`, `[G, 2, k]`; None if wiring is fixed."""
        shape = (self.gates, 2, self.candidates)
        return None if self.candidates == 1 else flat[self.gates :].reshape(-1)[: math.prod(shape)].reshape(shape)

    def chosen(self, flat: npt.NDArray[Any]) -> "Layout":
        """The layout of the most probable candidates by the logits `flat [P, 16]`; itself if wiring is fixed."""
        logits = self.wire_logits(flat)
        if logits is None:
            return self
        best = logits.argmax(axis=2)[self.instance_gates]
        return replace(self, wires=np.take_along_axis(self.wires, best[..., None], axis=2)[..., 0])

    @cached_property
    def instance_gates(self) -> Index:
        """uint32 `[instances]`: the gate whose coefficients an instance uses."""
        return np.concatenate(
            [level.first_gate + np.arange(level.count, dtype=np.uint32) // level.replicas for level in self.levels]
        ).astype(np.uint32)

    @cached_property
    def slots(self) -> Index:
        """uint32, of the shape of `wires`: where an instance's input adjoints go."""
        return self._fanout[0]

    @cached_property
    def fanout(self) -> Index:
        """uint32 `[nodes, 2]`: the slots `[start, end)` whose sum is a node's adjoint."""
        return self._fanout[1]

    @property
    def slot_count(self) -> int:
        """Slots per cell: the patch region and two regions that levels take in turn."""
        return int(self.fanout.max(initial=1))

    # Only what trains has to know the slots: they are found when they are asked for, both at once.
    @cached_property
    def _fanout(self) -> tuple[Index, Index]:
        firsts = [self.patch_nodes + level.first_instance for level in self.levels]
        slots, fanout = slot_places(self.wires.reshape(-1), self.patch_nodes, [*firsts, self.nodes])
        return slots.reshape(self.wires.shape), fanout


def slot_places(read: npt.NDArray[np.integer], patch_nodes: int, firsts: Sequence[int]) -> tuple[Index, Index]:
    """Slots, uint32 `[edges]`, of edges that read these nodes, and `[start, end)` of each node's, uint32 `[nodes, 2]`.

    `firsts`: the first node of each level, and the number of nodes.

    For example, with two patch nodes 0 and 1, level one of node 2, which reads (0, 1), and node 3, which reads
    (1, 1), level two of node 4, which reads (2, 3), level three of node 5, which reads (4, 4), and level four of
    node 6, which reads (5, 5), the edges are 0 1 1 1 2 3 4 4 5 5, and their slots

        of node   0 1 1 1   2 3         4 4         5 5
        slot      0 1 2 3   4 5         6 7         4 5
        of level  patch     one         two         three

    Level three takes the region of level one: backward, its slots are read before level two writes those of level
    one. Node 1 sums the slots `[1, 4)`, node 4 `[6, 8)`, and node 6, which nobody reads, none.
    """
    read = read.astype(np.int64)
    # Sorted by the node that is read, the edges of one node lie side by side; stable, so that sums have one order.
    order = np.argsort(read, kind="stable")
    degree = np.bincount(read, minlength=firsts[-1])
    ends = np.cumsum(degree)
    starts = ends - degree
    # Nodes of a level lie side by side too, so that a level's slots move to their region by one shift. The two
    # regions are as large as the widest level needs.
    shift = np.zeros(len(degree), dtype=np.int64)
    spans = [(first, last, int(starts[first]), int(ends[last - 1])) for first, last in itertools.pairwise(firsts)]
    widest = max(end - start for _, _, start, end in spans)
    for index, (first, last, start, _) in enumerate(spans):
        shift[first:last] = int(ends[patch_nodes - 1]) + (index % 2) * widest - start
    slots = np.empty_like(read)
    slots[order] = np.arange(len(read))
    slots += shift[read]
    fanout = np.stack([starts + shift, ends + shift], axis=1)
    return slots.astype(np.uint32), fanout.astype(np.uint32)


def flat_layout(circuit: Circuit) -> Layout:
    """The flat layout of a circuit: perception instanced per channel, then the update network."""
    channels, kernels = circuit.channels, circuit.kernels
    patch_nodes = circuit.patch * channels
    levels: list[Level] = []
    wires: list[npt.NDArray[np.int64]] = []
    instance, gate = 0, 0

    # With two channels, and one kernel of two gates, the nodes of a cell are
    #     0 .. 8  the patch of channel 0        18, 19  perception gate 0 on channels 0 and 1
    #     9 .. 17 the patch of channel 1        20, 21  perception gate 1 on channels 0 and 1
    # and the update network reads, centres first, then channel by channel: 4 13, 18 20, 19 21.

    # nodes[k, c, j]: node that input j of perception kernel k reads for channel c
    patch = np.arange(channels)[:, None] * circuit.patch + np.arange(circuit.patch)
    nodes = np.broadcast_to(patch, (kernels, channels, circuit.patch))
    for pairs in circuit.perceive_wires:  # [K, 2, out], or [K, 2, out, k] with candidates, which stay the last axis
        n_out, tail = pairs.shape[2], pairs.shape[3:]
        sources = np.take_along_axis(nodes, pairs.reshape(kernels, 1, -1), axis=2)
        by_side = sources.reshape(kernels, channels, 2, n_out, *tail)
        wires.append(np.moveaxis(by_side, 3, 1).reshape(-1, 2, *tail))  # channel fastest
        count = kernels * n_out * channels
        levels.append(Level(instance, count, gate, channels))
        # an instance's place in its level is (k * n_out + j) * C + c: all channels of a gate share its coefficients
        own = patch_nodes + instance + np.arange(count)
        nodes = own.reshape(kernels, n_out, channels).transpose(0, 2, 1)
        instance, gate = instance + count, gate + kernels * n_out

    # The notebook concatenates in this order, and a seed's wires are drawn for it: no other one gives its circuits.
    centre = patch[:, circuit.patch // 2]
    inputs = np.concatenate([centre, nodes.transpose(1, 2, 0).reshape(-1)])  # [centre] ++ [(c*S + s)*K + k]
    for pairs in circuit.update_wires:  # [2, out], or [2, out, k]
        wires.append(np.moveaxis(inputs[pairs], 0, 1))
        count = pairs.shape[1]
        levels.append(Level(instance, count, gate, 1))
        inputs = patch_nodes + instance + np.arange(count)
        instance, gate = instance + count, gate + count
    flat = np.concatenate(wires).astype(np.uint32)
    return Layout(channels, gate, tuple(levels), flat, kernels, len(circuit.perceive_wires), circuit.patch)
