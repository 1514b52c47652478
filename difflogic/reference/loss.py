"""The loss, a sum of squares over the loss channels, and its adjoint. Twin of `loss.wgsl`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic.shape import Shape
from difflogic.wiring import CENTRE, PATCH

Array = npt.NDArray[Any]


def loss(shape: Shape, states: Array, targets: Array, d_patches: Array) -> float:
    """`sum (y - target)^2` of the last state; `targets [loss_channels, cells]`.

    The adjoint of the last state goes where a cell's own patch has it, the centre, so that the first
    backward step gathers it like every other.
    """
    difference = states[shape.steps][: shape.loss_channels] - targets
    d_patches[:] = 0
    d_patches[CENTRE : PATCH * shape.loss_channels : PATCH] = 2 * difference
    return float(np.sum(difference**2))
