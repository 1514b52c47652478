"""Faults in adjoints: flips negate adjoints, stuck cells clear them. Reference implementation of `d_faults.wgsl`."""

import numpy as np

from difflogic.core.wiring import PATCH
from difflogic.engine.events import Faults
from difflogic.engine.shape import Array, Shape
from difflogic.reference.kernels.faults import cells_last
from difflogic.reference.kernels.grid import shifted


def d_faults(shape: Shape, mark: int, fault_keys: Array, listed: Array | None, d_patches: Array) -> None:
    """Multiply the adjoints of step `mark` in `d_patches [9*C, cells]` by -1 for flipped bits and 0 for stuck cells."""
    flips, stuck = cells_last(shape, mark, Faults(shape.faults, fault_keys, listed))
    factors = np.where(stuck > 0, 0, np.where(flips, -1, 1)).astype(d_patches.dtype)
    # Adjoints of a cell are stored at its neighbours, as in `d_damage`: each factor is shifted to them.
    for f in range(PATCH):
        for channel, factor in enumerate(factors):
            for value in (0, -1):
                meant = shifted(shape, factor == value, f)
                d_patches[PATCH * channel + f, meant] *= d_patches.dtype.type(value)
