"""Flat layout of a circuit, the same for every engine: one vector of nodes per cell, computed level by level.

Every cell has `nodes` values: first its patch (node `channel * 9 + f`), then the output of every gate *instance*. An
update gate has one instance. A perception gate has C instances, one per channel (channel fastest), with the same
coefficients. The instances of a level read only nodes of earlier levels. A CA step computes the patches, then level
after level; the last C nodes are the next state.

In the backward pass an instance writes the adjoints of its two inputs to two *slots*. The slots of one node are
adjacent: the adjoint of a node is the sum over the slots `[start, end)`, a gather without indices. The slots of a level
are free when the level has been processed. So levels alternate between two regions; patch nodes have a separate region.

A circuit without perception has a patch of one value per channel, and its last nodes are the outputs.
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
    """Level of `count` instances from `first_instance` on; its instance `i` has gate `first_gate + i // replicas`."""

    first_instance: int
    count: int
    first_gate: int
    replicas: int


@dataclass(frozen=True, eq=False)
class Layout:
    """Flat wiring of a circuit; the output of instance `i` is node `patch_nodes + i`."""

    channels: int
    gates: int
    levels: tuple[Level, ...]
    wires: Index
    """Nodes that inputs a and b of each instance read, uint32 `[instances, 2]`, or, with candidates, `[..., k]`."""
    kernels: int = 1
    perception_levels: int = 0
    """Number of perception levels, which precede the update levels."""
    patch: int = wiring.PATCH
    """Number of values that a cell reads per channel: 9, or 1 without perception."""

    @property
    def patch_nodes(self) -> int:
        return self.patch * self.channels

    @property
    def outputs(self) -> int:
        """Number of outputs, the instances of the last level: the next state, or a feed-forward circuit's outputs."""
        return self.levels[-1].count

    @property
    def instances(self) -> int:
        return len(self.wires)

    @property
    def nodes(self) -> int:
        return self.patch_nodes + self.instances

    @property
    def parameters(self) -> int:
        """Number of rows of 16 parameters, P: logits of gates, then logits of candidate wires."""
        return self.gates + (-(-2 * self.candidates * self.gates // 16) if self.candidates > 1 else 0)

    @property
    def candidates(self) -> int:
        return self.wires.shape[2] if self.wires.ndim > 2 else 1

    def wire_logits(self, flat: npt.NDArray[Any]) -> npt.NDArray[Any] | None:
        """Return the logits of candidate wires, `[G, 2, k]`, contained in `flat [P, 16]`; None if wiring is fixed."""
        shape = (self.gates, 2, self.candidates)
        return None if self.candidates == 1 else flat[self.gates :].reshape(-1)[: math.prod(shape)].reshape(shape)

    def chosen(self, flat: npt.NDArray[Any]) -> "Layout":
        """Return a copy with the most probable wires for the logits `flat [P, 16]`; `self` if wiring is fixed."""
        logits = self.wire_logits(flat)
        if logits is None:
            return self
        best = logits.argmax(axis=2)[self.instance_gates]
        return replace(self, wires=np.take_along_axis(self.wires, best[..., None], axis=2)[..., 0])

    @cached_property
    def instance_gates(self) -> Index:
        """Index of the gate of each instance, uint32 `[instances]`."""
        return np.concatenate(
            [level.first_gate + np.arange(level.count, dtype=np.uint32) // level.replicas for level in self.levels]
        ).astype(np.uint32)

    @cached_property
    def slots(self) -> Index:
        """Slot in which each instance stores the adjoint of each of its inputs, uint32 in the shape of `wires`."""
        return self._fanout[0]

    @cached_property
    def fanout(self) -> Index:
        """Range of slots `[start, end)` whose sum is the adjoint of each node, uint32 `[nodes, 2]`."""
        return self._fanout[1]

    @property
    def slot_count(self) -> int:
        """Number of slots per cell, for the region of the patch and the two regions between which levels alternate."""
        return int(self.fanout.max(initial=1))

    # Only training needs slots, so `slots` and `fanout` are computed together on first use.
    @cached_property
    def _fanout(self) -> tuple[Index, Index]:
        firsts = [self.patch_nodes + level.first_instance for level in self.levels]
        slots, fanout = slot_places(self.wires.reshape(-1), self.patch_nodes, [*firsts, self.nodes])
        return slots.reshape(self.wires.shape), fanout


def slot_places(read: npt.NDArray[np.integer], patch_nodes: int, firsts: Sequence[int]) -> tuple[Index, Index]:
    """Return the slot of each edge, uint32 `[edges]`, and the slots `[start, end)` of each node, `[nodes, 2]`.

    An edge is an input of an instance; edge e reads node `read[e]`. `firsts` contains the first node of each level,
    then the number of nodes.

    Example: patch nodes 0 and 1; level one with node 2 = (0, 1) and node 3 = (1, 1); level two with node 4 = (2, 3);
    level three with node 5 = (4, 4); level four with node 6 = (5, 5). The edges read 0 1 1 1 2 3 4 4 5 5, in slots

        node      0 1 1 1   2 3         4 4         5 5
        slot      0 1 2 3   4 5         6 7         4 5
        level     patch     one         two         three

    Levels three and one share a region: the backward pass has read the slots of level three before it writes those of
    level one. Node 1 sums the slots `[1, 4)`, node 4 `[6, 8)`. Node 6 has no reader and therefore no slots.
    """
    read = read.astype(np.int64)
    # Sort edges by the node that they read, so that a node's edges are adjacent. A stable sort fixes the order of sums.
    order = np.argsort(read, kind="stable")
    degree = np.bincount(read, minlength=firsts[-1])
    ends = np.cumsum(degree)
    starts = ends - degree
    # The nodes of a level are adjacent, so one shift moves its slots to their region. The widest level determines the
    # size of both regions.
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
    """Return the layout of a circuit: the levels of perception, with an instance per channel, then those of update."""
    channels, kernels = circuit.channels, circuit.kernels
    patch_nodes = circuit.patch * channels
    levels: list[Level] = []
    wires: list[npt.NDArray[np.int64]] = []
    instance, gate = 0, 0

    # With two channels, and one kernel of two gates, the nodes of a cell are
    #     0 .. 8  the patch of channel 0        18, 19  perception gate 0 on channels 0 and 1
    #     9 .. 17 the patch of channel 1        20, 21  perception gate 1 on channels 0 and 1
    # and the update network reads the centres first, then channel by channel: 4 13, 18 20, 19 21.

    # nodes[k, c, j]: the node that is value j for perception kernel k and channel c
    patch = np.arange(channels)[:, None] * circuit.patch + np.arange(circuit.patch)
    nodes = np.broadcast_to(patch, (kernels, channels, circuit.patch))
    for pairs in circuit.perceive_wires:  # [K, 2, out], or [K, 2, out, k] with candidates, which stay the last axis
        n_out, tail = pairs.shape[2], pairs.shape[3:]
        sources = np.take_along_axis(nodes, pairs.reshape(kernels, 1, -1), axis=2)
        by_side = sources.reshape(kernels, channels, 2, n_out, *tail)
        wires.append(np.moveaxis(by_side, 3, 1).reshape(-1, 2, *tail))  # channel fastest
        count = kernels * n_out * channels
        levels.append(Level(instance, count, gate, channels))
        # The index of an instance in its level is (k * n_out + j) * C + c: all channels share a gate's coefficients.
        own = patch_nodes + instance + np.arange(count)
        nodes = own.reshape(kernels, n_out, channels).transpose(0, 2, 1)
        instance, gate = instance + count, gate + kernels * n_out

    # The inputs are in the order of the authors' notebook, so that a seed yields the same circuit.
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
