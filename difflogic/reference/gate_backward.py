"""One CA step backward: adjoints to the patches, moments to the gates. Twin of `gate_backward.wgsl`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic.layout import Layout
from difflogic.reference.gate_forward import fires
from difflogic.reference.grid import gather_patches
from difflogic.shape import Shape
from difflogic.wiring import CENTRE, PATCH

Array = npt.NDArray[Any]


def gate_backward(
    shape: Shape,
    at: int,
    layout: Layout,
    coefficients: Array,
    masks: Array | None,
    nodes: Array,
    slots: Array,
    d_patches: Array,
    partials: Array,
) -> None:
    """`d_patches [9*C, cells]` of step `at+1` becomes that of step `at`; `partials [I, 4]` is added to.

    For upstream `d`: `d_a = d*(ca + cab*b)`, `d_b = d*(cb + cab*a)`; the moments of an instance are
    `(sum d, sum d*a, sum d*b, sum d*a*b)` over the cells. `slots [slot_count, cells]` is scratch.
    """
    d_state = gather_patches(shape, d_patches)
    kept = None if masks is None else ~fires(shape, masks, at)
    d_level = d_state if kept is None else np.where(kept, 0, d_state)
    for level in reversed(layout.levels):
        span = slice(level.first_instance, level.first_instance + level.count)
        if level is not layout.levels[-1]:
            d_level = sum_slots(slots, layout.fanout[layout.patch_nodes + span.start : layout.patch_nodes + span.stop])
        a, b = nodes[layout.wires[span, 0]], nodes[layout.wires[span, 1]]
        _, ca, cb, cab = coefficients[layout.instance_gates[span]].T[:, :, None]
        slots[layout.slots[span, 0]] = d_level * (ca + cab * b)
        slots[layout.slots[span, 1]] = d_level * (cb + cab * a)
        d_a = d_level * a
        partials[span] += np.stack([d_level.sum(1), d_a.sum(1), (d_level * b).sum(1), (d_a * b).sum(1)], axis=1)
    d_patches[:] = sum_slots(slots, layout.fanout[: layout.patch_nodes])
    if kept is not None:
        d_patches[CENTRE::PATCH] += np.where(kept, d_state, 0)


def sum_slots(slots: Array, fanout: Array) -> Array:
    """Adjoints `[n, cells]` of the nodes whose slots are `fanout [n, 2]`, summed in slot order."""
    starts = fanout[:, 0].astype(np.int64)
    degree = fanout[:, 1].astype(np.int64) - starts
    total = np.zeros((len(fanout), slots.shape[1]), dtype=slots.dtype)
    for rank in range(degree.max(initial=0)):
        nodes = np.flatnonzero(degree > rank)
        total[nodes] += slots[starts[nodes] + rank]
    return total
