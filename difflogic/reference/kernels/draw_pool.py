"""Sample a batch from the pool. Reference implementation of `draw_pool.wgsl`."""

from difflogic.core import prng
from difflogic.engine import control as c
from difflogic.engine import events
from difflogic.engine.shape import Array, Shape


def draw_pool(shape: Shape, control: Array, pool: Array, state: Array, places: Array) -> None:
    """Sample `places [B]`, indices in `pool [pool, H, W, C]`, with the data subkey, and copy these grids to `state`."""
    # Each sample has its own part of the pool, so that no two of a batch are written back to the same place.
    places[:] = events.draw_places(prng.split(control[c.DATA_KEY])[1], shape.batch, len(pool))
    state[:] = pool[places].reshape(-1, shape.channels).T
