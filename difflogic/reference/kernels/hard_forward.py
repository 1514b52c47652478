"""One CA step of the hard circuit, 32 samples per word. Reference implementation of `hard_forward.wgsl`."""

import numpy as np

from difflogic.core import gates
from difflogic.engine.shape import Array, Shape
from difflogic.model.layout import Layout
from difflogic.reference.kernels.gate_forward import fires
from difflogic.reference.kernels.grid import write_patches


def hard_forward(
    shape: Shape,
    at: int,
    layout: Layout,
    gate_ids: Array,
    masks: Array | None,
    words: Array,
    next_words: Array,
    values: Array,
) -> None:
    """Compute `next_words` from `words [C, groups*H*W]`, both uint32; `shape.batch` counts groups of 32 samples.

    Bit `3 - (2a + b)` of a gate's id is its output for a and b, so a gate on words is an OR of four masked terms.
    """
    write_patches(shape, words, values)
    truth = np.where(gates.TRUTH == 1, np.uint32(0xFFFFFFFF), np.uint32(0))
    for level in layout.levels:
        span = slice(level.first_instance, level.first_instance + level.count)
        a, b = values[layout.wires[span, 0]], values[layout.wires[span, 1]]
        # Each entry of the truth table is a word of zeros or ones, so that all samples are computed at once.
        f00, f01, f10, f11 = truth[gate_ids[layout.instance_gates[span]]].T[:, :, None]
        out = (~a & ((~b & f00) | (b & f01))) | (a & ((~b & f10) | (b & f11)))
        values[layout.patch_nodes + span.start : layout.patch_nodes + span.stop] = out
    new = values[-shape.channels :]
    next_words[:] = new if masks is None else np.where(fires(shape, masks, at), new, words)
