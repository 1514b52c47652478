"""The gates of a level in the order in which the fused kernels take them: along trails.

`unique` connections pair each node with the next, so that the gates of a level, taken as edges between the nodes that
they read, form long paths: input b of one gate is input a of another. An invocation that follows such a trail loads
each node once instead of twice, and has a node's whole adjoint once it has passed it: one slot instead of two. Where
many invocations share a chunk each gate is a trail of its own, so that all have work.

A node that is read other than by two successive gates of a trail gets slots as any other, in the order of the instances
that read it. Sums of two come to the same in either order, so that both ways agree in every bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from difflogic.layout import Index, Level, slot_places

if TYPE_CHECKING:
    from difflogic.gpu.trees import Wiring

ENDS, SINGLE = 1 << 31, 1 << 30
"""Marks at the number of its gate: the last instance of a trail; one whose own adjoint is that of one slot."""


@dataclass(frozen=True, eq=False)
class Trails:
    """A wiring's instances in the order of the tables, and the slots that go with it."""

    wiring: Wiring
    long: bool
    """Whether trails are as long as can be; else each is one gate."""

    @cached_property
    def _next(self) -> npt.NDArray[np.int64]:
        """int64 `[instances]`: the instance that follows on a trail, or -1."""
        layout, wires = self.wiring.layout, self.wiring.wires.astype(np.int64)
        after = np.full(layout.instances, -1, dtype=np.int64)
        if not self.long:
            return after
        readers = np.bincount(wires[self.wiring.sends], minlength=self.wiring.nodes)
        for level in layout.levels[self.wiring.tree_levels :]:
            first = level.first_instance
            a, b = wires[first : first + level.count].T
            as_a, as_b = (np.full(self.wiring.nodes, -1, dtype=np.int64) for _ in range(2))
            up = np.flatnonzero(a < b)  # trails go up, so that none bites its tail
            as_a[a[up]], as_b[b[up]] = first + up, first + up
            met = np.flatnonzero((as_a >= 0) & (as_b >= 0) & (readers == 2))
            after[as_b[met]] = as_a[met]
        return after

    @cached_property
    def order(self) -> npt.NDArray[np.int64]:
        """int64 `[instances]`: the instance in each place; a level, and in it a trail, is in one piece."""
        order = np.arange(len(self._next))
        if not self.long:
            return order
        head = order.copy()
        linked = np.flatnonzero(self._next >= 0)
        head[self._next[linked]] = linked
        while (head[head] != head).any():
            head = head[head]
        for level in self.wiring.layout.levels[self.wiring.tree_levels :]:
            span = slice(level.first_instance, level.first_instance + level.count)
            order[span] = level.first_instance + np.lexsort((self.wiring.wires[span, 0], head[span]))
        return order

    @cached_property
    def gates(self) -> Index:
        """uint32 `[instances]`, by instance: its gate, with ENDS where its trail does."""
        return self.wiring.layout.instance_gates | np.where(self._next < 0, np.uint32(ENDS), np.uint32(0))

    @cached_property
    def places(self) -> Index:
        """uint32 `[instances]`: where in `order` an instance is."""
        places = np.empty(len(self.order), dtype=np.uint32)
        places[self.order] = np.arange(len(places), dtype=np.uint32)
        return places

    @cached_property
    def sends(self) -> npt.NDArray[np.bool_]:
        """bool `[instances, 2]`: inputs that have a slot; between two gates of a trail it is the second's."""
        sends = self.wiring.sends.copy()
        sends[self._next >= 0, 1] = False
        return sends

    @cached_property
    def _places(self) -> tuple[Index, Index]:
        wiring, layout = self.wiring, self.wiring.layout
        levels: tuple[Level, ...] = layout.levels[max(0, wiring.tree_levels - 1) :]
        firsts = [layout.patch_nodes + level.first_instance - wiring.inner for level in levels]
        slots = np.zeros((layout.instances, 2), dtype=np.uint32)
        read = wiring.wires[self.sends]
        slots[self.sends], fanout = slot_places(read, layout.patch_nodes, [*firsts, wiring.nodes])
        return slots, fanout

    @property
    def slots(self) -> Index:
        """uint32 `[instances, 2]`, by instance: where its input adjoints go, as far as they do."""
        return self._places[0]

    @property
    def fanout(self) -> Index:
        """uint32 `[nodes, 2]`: the slots `[start, end)` whose sum is a node's adjoint."""
        return self._places[1]

    @property
    def slot_count(self) -> int:
        """Slots per cell: the patch region and two regions that levels take in turn."""
        return int(self.fanout.max(initial=1))
