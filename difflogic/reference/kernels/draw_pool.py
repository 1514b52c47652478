"""A batch from the sample pool. Twin of `draw_pool.wgsl`."""

from difflogic.core import prng
from difflogic.engine import control as c
from difflogic.engine import events
from difflogic.engine.shape import Array, Shape


def draw_pool(shape: Shape, control: Array, pool: Array, state: Array, places: Array) -> None:
    """`state [C, cells]` from `pool [pool, H, W, C]`; `places [B]` are drawn from the epoch's data subkey."""
    # Each sample has its own part of the pool: no two of a batch go back to the same place.
    places[:] = events.draw_places(prng.split(control[c.DATA_KEY])[1], shape.batch, len(pool))
    state[:] = pool[places].reshape(-1, shape.channels).T
