"""Adjoint of softmax, `d_x = y * (d_y - sum(d_y * y))` on an axis. Reference implementation of `d_softmax.wgsl`."""

from difflogic.engine.shape import Array


def d_softmax(axis: int, d_y: Array, y: Array) -> Array:
    """Return the adjoint of `x` for `y = softmax(x)` along `axis`, with the adjoint `d_y` of `y`."""
    product = d_y * y
    product -= y * product.sum(axis=axis, keepdims=True)
    return product
