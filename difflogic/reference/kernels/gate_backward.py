"""Adjoints of patches and moments of gates in one CA step. Reference implementation of `gate_backward.wgsl`."""

from collections.abc import Sequence

import numpy as np

from difflogic.core.wiring import CENTRE, PATCH
from difflogic.engine.shape import Array, Shape
from difflogic.model.layout import Layout
from difflogic.reference.kernels.coefficients import Parameters
from difflogic.reference.kernels.gate_forward import fires, inputs
from difflogic.reference.kernels.grid import gather


def gate_backward(
    shape: Shape,
    at: int,
    layout: Layout,
    parameters: Parameters,
    masks: Array | None,
    kept: Array,
    d_next: Array,
    values: Array,
    d_patches: Array,
    partials: Array,
) -> None:
    """Compute `d_patches` of step `at` from `d_next [9*C, cells]` of step `at + 1`, and add moments to `partials`.

    With the adjoint `d` of a gate, `d_a = d*(ca + cab*b)` and `d_b = d*(cb + cab*a)`. The moments of an instance are
    `(sum d, sum d*a, sum d*b, sum d*a*b)` over the cells, `partials [I, 4]`. With k candidates per input, candidate j
    of a receives `share_j * d_a`, and `partials [I, 4 + 2k]` also contain the sums of `d_a * candidate_j`, then those
    for b. `kept [N, cells]` are the step's nodes, `values [slot_count, cells]` adjoints from instances to the nodes
    they read. Without perception `d_next` is `[outputs, cells]` and `d_patches` `[C, cells]`.
    """
    d_state = gather(shape, d_next, layout.patch)
    idle = None if masks is None else ~fires(shape, masks, at)
    d_level = d_state if idle is None else np.where(idle, 0, d_state)
    # From the last level to the first: all readers of a level have written to its nodes' slots before it is processed.
    # The last level has no readers within the step; its adjoint is that of the next state.
    for level in reversed(layout.levels):
        span = slice(level.first_instance, level.first_instance + level.count)
        if level is not layout.levels[-1]:
            d_level = sum_slots(values, layout.fanout[layout.patch_nodes + span.start : layout.patch_nodes + span.stop])
        a, b = inputs(layout, span, parameters, kept)
        _, ca, cb, cab = parameters.coefficients[layout.instance_gates[span]].T[:, :, None]
        adjoints = d_level * (ca + cab * b), d_level * (cb + cab * a)
        if parameters.shares is None:
            values[layout.slots[span, 0]], values[layout.slots[span, 1]] = adjoints
        else:
            _choose_backward(layout, span, parameters.shares, kept, adjoints, values, partials)
        d_a = d_level * a
        partials[span, :4] += np.stack([d_level.sum(1), d_a.sum(1), (d_level * b).sum(1), (d_a * b).sum(1)], axis=1)
    d_patches[:] = sum_slots(values, layout.fanout[: layout.patch_nodes])
    # A cell that did not fire keeps its state, so its adjoint bypasses the gates, to the centre of its own patch.
    if idle is not None:
        d_patches[CENTRE::PATCH] += np.where(idle, d_state, 0)


def _choose_backward(
    layout: Layout, span: slice, shares: Array, kept: Array, adjoints: Sequence[Array], values: Array, partials: Array
) -> None:
    """Pass the adjoints of inputs a and b to their candidates, and add the candidates' moments to `partials`."""
    of_gates = shares[layout.instance_gates[span]]
    for side, d_input in enumerate(adjoints):
        for candidate in range(layout.candidates):
            values[layout.slots[span, side, candidate]] = of_gates[:, side, candidate, None] * d_input
            moments = (d_input * kept[layout.wires[span, side, candidate]]).sum(1)
            partials[span, 4 + side * layout.candidates + candidate] += moments


def sum_slots(slots: Array, fanout: Array) -> Array:
    """Return the nodes' adjoints `[n, cells]`: for each range in `fanout [n, 2]`, the sum of its slots in order."""
    starts = fanout[:, 0].astype(np.int64)
    degree = fanout[:, 1].astype(np.int64) - starts
    total = np.zeros((len(fanout), slots.shape[1]), dtype=slots.dtype)
    # All first slots, then all second ones of nodes that have two, and so on: each node adds its slots in
    # order, ((s0 + s1) + s2), as the kernels do.
    for rank in range(degree.max(initial=0)):
        nodes = np.flatnonzero(degree > rank)
        total[nodes] += slots[starts[nodes] + rank]
    return total
