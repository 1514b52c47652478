"""A batch from the sample pool. Twin of `draw_pool.wgsl`."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from difflogic import control as c
from difflogic import prng, starts
from difflogic.shape import Shape

Array = npt.NDArray[Any]


def draw_pool(shape: Shape, control: Array, pool: Array, state: Array, places: Array) -> None:
    """`state [C, cells]` from `pool [pool, H, W, C]`; `places [B]` are drawn from the epoch's data subkey."""
    places[:] = starts.places(prng.split(control[c.DATA_KEY])[1], shape.batch, len(pool))
    state[:] = pool[places].reshape(-1, shape.channels).T
