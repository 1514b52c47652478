"""Add the adjoint of a state's loss to the state's adjoint. Reference implementation of `step_loss_backward.wgsl`."""

from difflogic.core.wiring import CENTRE, PATCH
from difflogic.engine.shape import Array, Shape


def step_loss_backward(shape: Shape, mark: int, d_judged: Array, d_patches: Array) -> None:
    """Add entry `mark` of `d_judged [J-1, loss_channels, cells]` to the centre of each cell's patch in `d_patches`."""
    d_patches[CENTRE : PATCH * shape.loss_channels : PATCH] += d_judged[mark]
