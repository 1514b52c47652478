"""Fire masks: cells updated in each asynchronous step. Reference implementation of `fire_mask.wgsl`."""

from difflogic.core import prng
from difflogic.engine import control as c
from difflogic.engine import events
from difflogic.engine.shape import Array, Shape


def fire_mask(shape: Shape, fire_rate: float, control: Array, masks: Array) -> None:
    """Fill `masks [T, H*W]` with 1 with probability `fire_rate`, else 0; the random key is the training subkey."""
    key = prng.split(control[c.TRAIN_KEY])[1]
    masks[:] = events.draw_masks(key, shape.steps, (shape.cells_per_grid,), fire_rate)[1]
