"""The adjoint of an earlier loss joins those that come from later steps. Twin of `step_loss_backward.wgsl`."""

from __future__ import annotations

from difflogic.engine.shape import Array, Shape


def step_loss_backward(shape: Shape, mark: int, d_judged: Array, d_rows: Array) -> None:
    """`d_judged [J-1, loss_channels, cells]` is added in the middle row of a cell's own patch, as `loss` puts it."""
    d_rows[1 : 3 * shape.loss_channels : 3] += d_judged[mark]
