"""One CA step of the soft circuit. Reference implementation of `gate_forward.wgsl`."""

import numpy as np

from difflogic.engine.shape import Array, Shape
from difflogic.model.layout import Layout
from difflogic.reference.kernels.coefficients import Parameters
from difflogic.reference.kernels.grid import write_patches


def gate_forward(
    shape: Shape,
    at: int,
    layout: Layout,
    parameters: Parameters,
    masks: Array | None,
    state: Array,
    next_state: Array,
    values: Array,
) -> None:
    """Compute `next_state [outputs, cells]` from `state [C, cells]`, and write all nodes to `values [N, cells]`.

    A gate is `c0 + ca*a + cb*b + cab*a*b`; with candidates, each input is `sum_j share_j * candidate_j`.
    Cells whose value in `masks [T, H*W]` is 0 keep their old state.
    """
    write_patches(shape, state, values, layout.patch)
    # One level at a time, over all cells: `a` and `b` are copies `[count, cells]` of the rows that its instances read.
    for level in layout.levels:
        span = slice(level.first_instance, level.first_instance + level.count)
        a, b = inputs(layout, span, parameters, values)
        c0, ca, cb, cab = parameters.coefficients[layout.instance_gates[span]].T[:, :, None]
        values[layout.patch_nodes + span.start : layout.patch_nodes + span.stop] = c0 + ca * a + (cb + cab * a) * b
    new = values[-layout.outputs :]
    next_state[:] = new if masks is None else np.where(fires(shape, masks, at), new, state)


def inputs(layout: Layout, span: slice, parameters: Parameters, values: Array) -> tuple[Array, Array]:
    """Return inputs a and b of the instances in `span`, `[count, cells]` each, from the nodes `values [N, cells]`."""
    if parameters.shares is None:
        return values[layout.wires[span, 0]], values[layout.wires[span, 1]]
    mixed = np.zeros((2, span.stop - span.start, values.shape[1]), dtype=values.dtype)
    shares = parameters.shares[layout.instance_gates[span]]
    for candidate in range(layout.candidates):
        for side in (0, 1):
            mixed[side] += shares[:, side, candidate, None] * values[layout.wires[span, side, candidate]]
    return mixed[0], mixed[1]


def fires(shape: Shape, masks: Array, at: int) -> Array:
    """Return a mask `[cells]` of cells that take their new state in step `at`; all samples share `masks [T, H*W]`."""
    return np.tile(masks[at] != 0, shape.batch)
