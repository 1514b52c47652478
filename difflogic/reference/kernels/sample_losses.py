"""Each sample's loss after the last step. Twin of `sample_losses.wgsl`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic.engine.shape import Shape

Array = npt.NDArray[Any]


def sample_losses(shape: Shape, state: Array, targets: Array, sample_losses: Array) -> None:
    """`sample_losses [B]` of `state [C, cells]`; `targets [loss_channels, cells]`."""
    errors = np.square(state[: shape.loss_channels] - targets)
    sample_losses[:] = errors.reshape(-1, shape.batch, shape.cells_per_grid).sum(axis=(0, 2))
