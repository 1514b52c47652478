"""Wiring for the fused kernels, which compute the tree-shaped part of perception in registers.

In the paper's perception kernels, 8 gates each compare a neighbour with the cell itself, 4 gates read these in pairs,
and 2 gates read those 4. An invocation computes a tree of 4 + 2 + 1 gates from the patch, also in the backward pass.
Only its root is a node. A tree passes one adjoint to each of its neighbours, and one sum to the cell itself.

Nodes are then the patch, the roots, and all later gates. Trees depend only on a circuit's widths and connections, so
that a model of a population and the same model by itself run the same kernels.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from difflogic.core.wiring import CENTRE, PATCH
from difflogic.model.layout import Index, Layout, slot_places

WIDTHS = (8, 4, 2)
"""Numbers of gates in the first levels of a perception kernel that form trees, see `shaders/common/trees.wgsl`."""


def are_trees(layout: Layout) -> bool:
    """Return whether all perception kernels begin with trees: one reader per gate, and leaves that read the cell."""
    levels = layout.levels[: layout.perception_levels][: len(WIDTHS)]
    if tuple(level.count // layout.kernels // layout.channels for level in levels) != WIDTHS:
        return False
    leaves, roots = levels[0], layout.patch_nodes + levels[-1].first_instance
    read = np.bincount(layout.wires.reshape(-1), minlength=layout.nodes)[layout.patch_nodes : roots]
    return bool((read == 1).all() and (layout.wires[: leaves.count, 1] % PATCH == CENTRE).all())


def wired(layouts: Sequence[Layout]) -> list[Wiring]:
    """Return the wirings of models that share dispatches; they use trees if all layouts have trees."""
    trees = all(layout.candidates == 1 and are_trees(layout) for layout in layouts)
    return [Wiring(layout, trees) for layout in layouts]


@dataclass(frozen=True)
class Wiring:
    """Wires and slots of a layout, numbered as in the GPU kernels.

    Example: nodes 0 to 8 are the patch of one channel. Level 1 has two gates, instances 0 and 1, which read (0, 4) and
    (4, 8); level 2 has instance 2, which reads their nodes (9, 10). In the backward pass each input has a slot, sorted
    by the node it reads: `slots` is [[0, 1], [2, 3], [4, 5]], and `fanout` of node 4 is [1, 3): its adjoint is the sum
    of these slots. After the slots of the patch, levels use two regions alternately.
    """

    layout: Layout
    trees: bool

    @property
    def tree_levels(self) -> int:
        """Number of initial levels that are computed as trees."""
        return len(WIDTHS) if self.trees else 0

    @property
    def inner(self) -> int:
        """Number of gate instances below the roots of trees, whose values are not stored as nodes."""
        return self.layout.levels[self.tree_levels - 1].first_instance if self.trees else 0

    @property
    def nodes(self) -> int:
        return self.layout.nodes - self.inner

    @cached_property
    def wires(self) -> Index:
        """Nodes that each instance reads, uint32 `[instances, 2]`; in a tree above its leaves, gates instead of nodes.

        With candidates the shape is `[instances, 2, k]`, like the shapes of `sends` and `slots`.
        """
        layout, wires = self.layout, self.layout.wires.astype(np.int64)
        if not self.trees:
            return layout.wires
        # Instances below the roots have no node, so the numbers of nodes after the patch are lower by `inner`.
        numbered = np.where(wires >= layout.patch_nodes, wires - self.inner, wires)
        above = slice(layout.levels[1].first_instance, self._ends)
        numbered[above] = layout.instance_gates[wires[above] - layout.patch_nodes]
        return numbered.astype(np.uint32)

    @cached_property
    def near_wires(self) -> Index:
        """`wires` with indices in workgroup memory instead of nodes, uint32 `[instances, 2]`.

        The patch comes first, then the nodes of an even level, then those of an odd level.
        """
        patch, wires = self.layout.patch_nodes, self.wires.astype(np.int64)
        for number, (before, level) in enumerate(itertools.pairwise(self.layout.levels)):
            if number + 1 >= self.tree_levels:
                read = wires[level.first_instance : level.first_instance + level.count]
                first = before.first_instance - self.inner
                read[read >= patch] += number % 2 * self.near_odd - first
        return wires.astype(np.uint32)

    def _widest(self, odd: int) -> int:
        """Return the maximum number of nodes of an even level (`odd` is 0) or of an odd level (1)."""
        counts = [level.count for level in self.layout.levels][max(0, self.tree_levels - 1) :]
        return max(counts[(odd + max(0, self.tree_levels - 1)) % 2 :: 2], default=0)

    @property
    def near_odd(self) -> int:
        """Maximum number of nodes of an even level; in workgroup memory, the nodes of odd levels follow these."""
        return self._widest(0)

    @property
    def near_nodes(self) -> int:
        """Number of nodes in workgroup memory: those of the patch, the widest even and the widest odd level."""
        return self.layout.patch_nodes + self._widest(0) + self._widest(1)

    @property
    def _ends(self) -> int:
        """Index of the first instance after the trees."""
        return self.layout.levels[self.tree_levels].first_instance

    @cached_property
    def sends(self) -> npt.NDArray[np.bool_]:
        """Mask of inputs whose adjoints go to slots, bool `[instances, 2]`; one leaf per tree sends the cell's sum."""
        layout = self.layout
        sends = np.ones(layout.wires.shape, dtype=np.bool_)
        if self.trees:
            # Inner gates pass adjoints on in registers. The four leaves read the cell itself as input b. The leaf that
            # the path along inputs a from the root reaches sends the sum of their adjoints.
            sends[layout.levels[1].first_instance : self._ends] = False
            sends[: layout.levels[1].first_instance, 1] = False
            # From every root, follow inputs a, level by level, to that leaf.
            first = np.arange(self.inner, self._ends)
            for _ in range(self.tree_levels - 1):
                first = layout.wires[first, 0].astype(np.int64) - layout.patch_nodes
            sends[first, 1] = True
        return sends

    @cached_property
    def order(self) -> npt.NDArray[np.int64]:
        """Order of the instances in the backward kernel, int64 `[instances]`: level by level.

        Each level after the trees is sorted by input a, which is then often already loaded, as b of the gate before.
        """
        # Levels of trees are not sorted, since the kernels find their instances by number.
        level_of = np.repeat(np.arange(len(self.layout.levels)), [level.count for level in self.layout.levels])
        first = self.wires.reshape(self.layout.instances, -1)[:, 0]
        read = np.where(level_of < self.tree_levels, 0, first)
        return np.lexsort((read, level_of))

    @cached_property
    def _places(self) -> tuple[Index, Index]:
        # Atomic sums would depend on the order of invocations. With a slot for each input, sorted by the node it reads,
        # a node adds its slots in order: two runs, or two schedules, give the same bits.
        layout = self.layout
        levels = layout.levels[max(0, self.tree_levels - 1) :]  # levels with nodes: the roots and all later levels
        firsts = [layout.patch_nodes + level.first_instance - self.inner for level in levels]
        slots = np.zeros(layout.wires.shape, dtype=np.uint32)
        read = self.wires[self.sends]
        slots[self.sends], fanout = slot_places(read, layout.patch_nodes, [*firsts, self.nodes])
        return slots, fanout

    @property
    def slots(self) -> Index:
        """Slot of the adjoint of each input that `sends` selects, uint32 `[instances, 2]`."""
        return self._places[0]

    @property
    def fanout(self) -> Index:
        """Range `[start, end)` of slots whose sum is a node's adjoint, uint32 `[nodes, 2]`."""
        return self._places[1]

    @property
    def slot_count(self) -> int:
        """Number of slots per cell: the patch region, and two regions that levels use alternately."""
        return int(self.fanout.max(initial=1))

    @property
    def patch_slots(self) -> int:
        """Number of slots of the patch region."""
        return int(self.fanout[: self.layout.patch_nodes].max(initial=1))

    @cached_property
    def reads_near(self) -> bool:
        """True if chunks may be split: wiring is fixed, and levels read only the previous level and the patch."""
        if self.layout.candidates > 1:
            return False
        patch, levels = self.layout.patch_nodes, self.layout.levels[max(0, self.tree_levels - 1) :]
        for before, level in itertools.pairwise(levels):
            read = self.wires[level.first_instance : level.first_instance + level.count]
            if ((read >= patch) & (read < patch + before.first_instance - self.inner)).any():
                return False
        return True

    def edges(self, slots: int, is_split: bool) -> Index:
        """Return the `Edge` structs of all instances, sorted as in `order`, followed by those of all patch nodes.

        Columns are the fields of the struct in `gate_backward.wgsl`: wires, slots, fanout (two each), gate, instance.
        No gate of the step reads the last level: its slots, after all other slots, contain the next state's adjoint.

        Args:
            slots: Number of slots of the plan, the maximum of all wirings of a population.
            is_split: True if chunks are split; the slots of levels then begin at index `slots`.

        Returns:
            uint32 `[instances + patch nodes, 8]`, with candidates `[instances + patch nodes, record, 8]`.
        """
        layout = self.layout
        edges = np.zeros((layout.instances + layout.patch_nodes, 8), dtype=np.uint32)
        own, patch = np.split(edges, [layout.instances])
        own[:, 0:2], own[:, 2:4] = (each.reshape(len(own), 2, -1)[..., 0] for each in (self.wires, self.slots))
        own[self.inner :, 4:6] = self.fanout[layout.patch_nodes :]
        patch[:, 4:6] = self.fanout[: layout.patch_nodes]
        if is_split:
            moved = np.uint32(slots - self.patch_slots)
            own[:, 2:4] += np.where(self.slots >= self.patch_slots, moved, np.uint32(0))
            own[self.inner :, 4:6] += moved
        else:
            own[-layout.outputs :, 4] = slots - layout.outputs + np.arange(layout.outputs)
            own[-layout.outputs :, 5] = own[-layout.outputs :, 4] + 1
        own[:, 6], own[:, 7] = layout.instance_gates, np.arange(layout.instances)
        own[:] = own[self.order]  # complete rows move, which is allowed since edges refer only to slots and nodes
        if layout.candidates == 1:
            return edges
        # Two candidates per row, each with two nodes and two slots.
        candidates = np.concatenate([self.wires, self.slots], axis=1).swapaxes(1, 2).reshape(layout.instances, -1, 8)
        rows = np.pad(candidates[self.order], [(0, layout.patch_nodes), (0, 0), (0, 0)])
        return np.concatenate([edges[:, None], rows], axis=1)
