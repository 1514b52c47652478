"""The loss, a sum of squares over the loss channels, and its adjoint. Twin of `loss.wgsl`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic import control as c
from difflogic.shape import Shape
from difflogic.wiring import CENTRE, PATCH

Array = npt.NDArray[Any]


def loss(shape: Shape, states: Array, targets: Array, d_patches: Array, loss_partials: Array, control: Array) -> None:
    """`sum (y - target)^2` of the last state, per cell; `targets [loss_channels, cells]`, `loss_partials [cells]`.

    The adjoint of the last state goes where a cell's own patch has it, the centre, so that the first
    backward step gathers it like every other.
    """
    difference = states[shape.steps][: shape.loss_channels] - targets
    d_patches[:] = 0
    d_patches[CENTRE : PATCH * shape.loss_channels : PATCH] = 2 * difference
    loss_partials[:] = np.sum(difference**2, axis=0)
    control[c.NONFINITE] = 0
