"""The loss of a state before the last, and how its adjoint joins those that come from later steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic.shape import Shape

Array = npt.NDArray[Any]


def judge(shape: Shape, state: Array, targets: Array, d_judged: Array, loss_partials: Array) -> None:
    """A `state [C, cells]` as `loss` judges the last, before it is damaged.

    `d_judged [loss_channels, cells]` keeps its adjoint, `loss_partials [cells]` its loss.
    """
    difference = state[: shape.loss_channels] - targets
    d_judged[:] = 2 * difference
    loss_partials[:] = np.sum(difference**2, axis=0)


def d_judge(shape: Shape, d_judged: Array, d_rows: Array) -> None:
    """Added in the middle row of a cell's own patch, as `loss` writes it."""
    d_rows[1 : 3 * shape.loss_channels : 3] += d_judged
