"""The mask says which cells take their new state in each step of an asynchronous rollout. Twin of `fire_mask.wgsl`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from difflogic.core import prng
from difflogic.engine import control as c
from difflogic.engine import events
from difflogic.engine.shape import Array, Shape


def fire_mask(shape: Shape, fire_rate: float, control: Array, masks: Array) -> None:
    """`masks [T, H*W]` of this epoch, from its training subkey."""
    masks[:] = draw_masks(shape, fire_rate, prng.split(control[c.TRAIN_KEY])[1])


def draw_masks(shape: Shape, fire_rate: float, key: prng.Key) -> npt.NDArray[np.float32]:
    """`[T, H*W]` of 0 and 1: see `events.draw_masks`."""
    return events.draw_masks(key, shape.steps, (shape.cells_per_grid,), fire_rate)[1]
