"""The sample pool: a batch is taken from it, and its last states go back."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic import control as c
from difflogic import prng, starts
from difflogic.shape import Shape

Array = npt.NDArray[Any]


def draw_pool(shape: Shape, control: Array, pool: Array, state: Array, places: Array) -> None:
    """`state [C, cells]` from `pool [pool, H, W, C]`; `places [B]` are drawn from the epoch's data subkey."""
    places[:] = starts.places(prng.split(control[c.DATA_KEY])[1], shape.batch, len(pool))
    state[:] = pool[places].reshape(-1, shape.channels).T


def write_back(
    shape: Shape, resets: int, control: Array, state: Array, targets: Array, fresh: Array, places: Array, pool: Array
) -> None:
    """The last `state [C, cells]`, rounded, to the samples' places in `pool`; of the `resets` worst a `fresh` start.

    `fresh [B, H, W, C]`. The worst have the largest loss after the last step, the first of equals. A flagged epoch
    writes nothing.
    """
    if control[c.NONFINITE]:
        return
    grids = (state.T > 0.5).reshape(shape.batch, shape.height, shape.width, shape.channels)
    difference = state[: shape.loss_channels] - targets
    losses = np.square(difference).reshape(-1, shape.batch, shape.cells_per_grid).sum(axis=(0, 2))
    pool[places] = grids
    worst = np.argsort(-losses, kind="stable")[:resets]
    pool[places[worst]] = fresh[worst]
