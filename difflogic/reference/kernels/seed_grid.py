"""Random initial states. Reference implementation of `seed_grid.wgsl`."""

from difflogic.core import prng
from difflogic.engine import control as c
from difflogic.engine.shape import Array, Shape


def seed_grid(shape: Shape, control: Array, state: Array) -> None:
    """Fill `state [C, cells]` with uniform bits, sampled in the order `[B, H, W, C]` with the epoch's data subkey."""
    _, sub = prng.split(control[c.DATA_KEY])
    bits = prng.randint_power_of_two(sub, (shape.cells, shape.channels), 2)
    state[:] = bits.T
