"""`y[i, ...] = x[places[i], ...]`. Twin of `gather.wgsl`."""

from difflogic.engine.shape import Array


def gather(places: Array, x: Array) -> Array:
    """Rows of `x` by their numbers, uint32, each as often as it is named."""
    return x[places]
