"""The adjoint of an earlier loss joins those that come from later steps. Twin of `step_loss_backward.wgsl`."""

from difflogic.core.wiring import CENTRE, PATCH
from difflogic.engine.shape import Array, Shape


def step_loss_backward(shape: Shape, mark: int, d_judged: Array, d_patches: Array) -> None:
    """`d_judged [J-1, loss_channels, cells]` is added at the centre of a cell's own patch, as `loss` puts it."""
    d_patches[CENTRE : PATCH * shape.loss_channels : PATCH] += d_judged[mark]
