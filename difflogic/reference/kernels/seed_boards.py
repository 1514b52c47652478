"""Initial states that are random boards. Reference implementation of `seed_boards.wgsl`."""

from difflogic.core import prng
from difflogic.engine import control as c
from difflogic.engine import events
from difflogic.engine.shape import Array, Shape


def seed_boards(shape: Shape, control: Array, state: Array) -> None:
    """Fill `state [1, cells]` with one random board per sample, sampled with the epoch's data subkey."""
    grid = (shape.batch, shape.height, shape.width, 1)
    state[:] = events.draw_starts("boards", prng.split(control[c.DATA_KEY])[1], grid, None).reshape(1, -1)
