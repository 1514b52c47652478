"""Selection of rows, `y[i, ...] = x[places[i], ...]`. Reference implementation of `gather.wgsl`."""

from difflogic.engine.shape import Array


def gather(places: Array, x: Array) -> Array:
    """Return the rows of `x` at the indices `places`, uint32 `[n]`, which may repeat."""
    return x[places]
