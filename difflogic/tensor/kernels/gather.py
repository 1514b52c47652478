"""Selection of rows, `y[i, ...] = x[places[i], ...]`. Reference of `gather.wgsl`."""

from difflogic.engine.shape import Array


def gather(places: Array, x: Array) -> Array:
    """Return rows of `x` by their numbers, uint32, which may repeat."""
    return x[places]
