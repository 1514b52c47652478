"""One CA step of the soft circuit. Twin of `gate_forward.wgsl`."""

import numpy as np

from difflogic.engine.shape import Array, Shape
from difflogic.model.layout import Layout
from difflogic.reference.kernels.grid import write_patches


def gate_forward(
    shape: Shape,
    at: int,
    layout: Layout,
    coefficients: Array,
    masks: Array | None,
    state: Array,
    next_state: Array,
    values: Array,
) -> None:
    """`state -> next_state`, `[C, cells]` and `[outputs, cells]`, leaving every node's value in `values [N, cells]`.

    A gate is `c0 + ca*a + cb*b + cab*a*b`. `masks [T, H*W]`: where 0, a cell keeps its old state.
    """
    write_patches(shape, state, values, layout.patch)
    # A level at a time, over all cells: `a` and `b` are copies `[count, cells]` of the rows that its instances read.
    for level in layout.levels:
        span = slice(level.first_instance, level.first_instance + level.count)
        a, b = values[layout.wires[span, 0]], values[layout.wires[span, 1]]
        c0, ca, cb, cab = coefficients[layout.instance_gates[span]].T[:, :, None]
        values[layout.patch_nodes + span.start : layout.patch_nodes + span.stop] = c0 + ca * a + (cb + cab * a) * b
    new = values[-layout.outputs :]
    next_state[:] = new if masks is None else np.where(fires(shape, masks, at), new, state)


def fires(shape: Shape, masks: Array, at: int) -> Array:
    """bool `[cells]`: which cells take their new state in step `at`; every sample has the same mask."""
    return np.tile(masks[at] != 0, shape.batch)
