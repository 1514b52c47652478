"""Loss, a sum of squared errors over the loss channels, and its adjoint. Reference implementation of `loss.wgsl`."""

import numpy as np

from difflogic.core.bits import IGNORED
from difflogic.core.wiring import CENTRE, PATCH
from difflogic.engine import control as c
from difflogic.engine.shape import Array, Shape


def loss(shape: Shape, state: Array, targets: Array, d_patches: Array, loss_partials: Array, control: Array) -> None:
    """Write each cell's `sum (y - target)^2` to `loss_partials [cells]`; `targets [J, loss_channels, cells]`.

    The adjoint of a cell is written to the centre of its patch, from which the first backward step gathers it.
    """
    difference = errors(shape, state, targets[-1])
    d_patches[:] = 0
    d_patches[CENTRE : PATCH * shape.loss_channels : PATCH] = 2 * difference
    loss_partials[:] = np.sum(difference**2, axis=0)
    # This is the first kernel of the backward pass, so it clears the flag; any value that is not finite sets it.
    control[c.NONFINITE] = 0


def errors(shape: Shape, state: Array, targets: Array) -> Array:
    """Return `state - target` of the loss channels, or 0 for IGNORED targets, `[loss_channels, cells]`."""
    return np.where(targets == IGNORED, state.dtype.type(0), state[: shape.loss_channels] - targets)
