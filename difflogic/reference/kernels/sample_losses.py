"""Loss of each sample after the last step. Reference implementation of `sample_losses.wgsl`."""

import numpy as np

from difflogic.engine.shape import Array, Shape
from difflogic.reference.kernels.loss import errors


def sample_losses(shape: Shape, state: Array, targets: Array, sample_losses: Array) -> None:
    """Write each sample's loss of the last state to `sample_losses [B]`; `targets [J, loss_channels, cells]`."""
    squares = np.square(errors(shape, state, targets[-1]))
    sample_losses[:] = squares.reshape(-1, shape.batch, shape.cells_per_grid).sum(axis=(0, 2))
