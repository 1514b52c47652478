"""Sample the corners of an epoch's damage squares. Reference implementation of `draw_corners.wgsl`."""

from difflogic.core import prng
from difflogic.engine import control as c
from difflogic.engine import events
from difflogic.engine.shape import Array, Shape


def draw_corners(shape: Shape, control: Array, corners: Array) -> None:
    """Fill `corners [D, B, 2]` with each square's first row and column, sampled with the epoch's training subkey."""
    key = prng.split(control[c.TRAIN_KEY])[1]
    corners[:] = events.draw_corners(key, len(shape.damage_steps), shape.batch, shape.height, shape.width)
