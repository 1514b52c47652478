"""The loss of a state before the last. Twin of `step_loss.wgsl`."""

import numpy as np

from difflogic.engine.shape import Array, Shape
from difflogic.reference.kernels.loss import errors


def step_loss(shape: Shape, mark: int, state: Array, targets: Array, d_judged: Array, loss_partials: Array) -> None:
    """The `state [C, cells]` of the `mark`-th judged step, as `loss` judges the last: before it is damaged.

    `targets` are as there. `d_judged [J-1, loss_channels, cells]` keeps its adjoint, `loss_partials [J, cells]` its
    loss.
    """
    difference = errors(shape, state, targets[mark % shape.targets])
    d_judged[mark] = 2 * difference
    loss_partials[mark] = np.sum(difference**2, axis=0)
