"""Loss of a state before the last one. Reference implementation of `step_loss.wgsl`."""

import numpy as np

from difflogic.engine.shape import Array, Shape
from difflogic.reference.kernels.loss import errors


def step_loss(shape: Shape, mark: int, state: Array, targets: Array, d_judged: Array, loss_partials: Array) -> None:
    """Compute the loss, as in `loss`, of `state [C, cells]` after evaluated step number `mark` and before its damage.

    `d_judged [J-1, loss_channels, cells]` receives the adjoint, `loss_partials [J, cells]` the loss.
    """
    difference = errors(shape, state, targets[mark % shape.targets])
    d_judged[mark] = 2 * difference
    loss_partials[mark] = np.sum(difference**2, axis=0)
