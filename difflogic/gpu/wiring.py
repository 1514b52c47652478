"""The wiring as the fused kernels see it: perception kernels begin with trees, which stay in registers.

In the paper's perception kernels 8 gates each compare a neighbour with the cell itself, 4 read these in pairs, 2 read
those. Each of the 8 and of the 4 is read once, so that its value need not be written down for others to read: one
invocation computes a tree of 4 + 2 + 1 gates from the patch, and again in the backward pass. Only its root is a node.
Adjoints stay within the tree likewise, and what its four leaves send to the cell itself is one sum. With values of 16
bits, only those of nodes are rounded.

Nodes are then the patch, the roots, and all later gates. Whether a circuit is treated so follows from its widths and
connections alone, so that a model of a population and the same model by itself run the same kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from difflogic.gpu.trails import Trails
from difflogic.layout import Index, Layout
from difflogic.wiring import CENTRE, PATCH

WIDTHS = (8, 4, 2)
"""Gates of a perception kernel by level, as far as they are trees: of `shaders/common/trees.wgsl`."""


def are_trees(layout: Layout) -> bool:
    """Whether every perception kernel begins with trees: of these widths, read once, the cell itself in every leaf."""
    levels = layout.levels[: layout.perception_levels][: len(WIDTHS)]
    if tuple(level.count // layout.kernels // layout.channels for level in levels) != WIDTHS:
        return False
    leaves, roots = levels[0], layout.patch_nodes + levels[-1].first_instance
    read = np.bincount(layout.wires.reshape(-1), minlength=layout.nodes)[layout.patch_nodes : roots]
    return bool((read == 1).all() and (layout.wires[: leaves.count, 1] % PATCH == CENTRE).all())


def wired(layouts: Sequence[Layout]) -> list[Wiring]:
    """The wirings of models that run in the same dispatches."""
    trees = all(map(are_trees, layouts))
    return [Wiring(layout, trees) for layout in layouts]


@dataclass(frozen=True)
class Wiring:
    """A layout's wires and slots, by the numbers that the kernels use."""

    layout: Layout
    trees: bool

    @property
    def tree_levels(self) -> int:
        """Levels that are computed as trees, before all others."""
        return len(WIDTHS) if self.trees else 0

    @property
    def inner(self) -> int:
        """Instances below the roots: they have no node."""
        return self.layout.levels[self.tree_levels - 1].first_instance if self.trees else 0

    @property
    def nodes(self) -> int:
        return self.layout.nodes - self.inner

    @cached_property
    def wires(self) -> Index:
        """uint32 `[instances, 2]`: the nodes that an instance reads; in a tree above its leaves, the gates."""
        layout, wires = self.layout, self.layout.wires.astype(np.int64)
        if not self.trees:
            return layout.wires
        numbered = np.where(wires >= layout.patch_nodes, wires - self.inner, wires)
        above = slice(layout.levels[1].first_instance, self._ends)
        numbered[above] = layout.instance_gates[wires[above] - layout.patch_nodes]
        return numbered.astype(np.uint32)

    @property
    def _ends(self) -> int:
        """The first instance after the trees."""
        return self.layout.levels[self.tree_levels].first_instance

    @cached_property
    def sends(self) -> npt.NDArray[np.bool_]:
        """bool `[instances, 2]`: inputs whose adjoint leaves the tree; to the cell itself a first leaf sends."""
        layout = self.layout
        sends = np.ones((layout.instances, 2), dtype=np.bool_)
        if self.trees:
            sends[layout.levels[1].first_instance : self._ends] = False
            sends[: layout.levels[1].first_instance, 1] = False
            first = np.arange(self.inner, self._ends)
            for _ in range(self.tree_levels - 1):
                first = layout.wires[first, 0].astype(np.int64) - layout.patch_nodes
            sends[first, 1] = True
        return sends

    @cached_property
    def apart(self) -> Trails:
        """Every gate a trail of its own."""
        return Trails(self, long=False)

    @cached_property
    def trails(self) -> Trails:
        """Trails as long as can be."""
        return Trails(self, long=True)
