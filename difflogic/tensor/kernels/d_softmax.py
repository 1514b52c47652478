"""`d_x = y * (d_y - sum(d_y * y))` along an axis. Twin of `d_softmax.wgsl`."""

from difflogic.engine.shape import Array


def d_softmax(axis: int, d_y: Array, y: Array) -> Array:
    """The adjoint of what `y` is the softmax of."""
    product = d_y * y
    product -= y * product.sum(axis=axis, keepdims=True)
    return product
