"""Loss of each sample after the last step. Reference implementation of `sample_losses.wgsl`."""

import numpy as np

from difflogic.engine.shape import Array, Shape


def sample_losses(shape: Shape, state: Array, targets: Array, sample_losses: Array) -> None:
    """Write each sample's loss of the last state to `sample_losses [B]`, for its `targets [loss_channels, cells]`."""
    errors = np.square(state[: shape.loss_channels] - targets)
    sample_losses[:] = errors.reshape(-1, shape.batch, shape.cells_per_grid).sum(axis=(0, 2))
