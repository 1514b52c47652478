"""Fresh start grids on the device. Twin of `seed_grid.wgsl`."""

from difflogic.core import prng
from difflogic.engine import control as c
from difflogic.engine.shape import Array, Shape


def seed_grid(shape: Shape, control: Array, state: Array) -> None:
    """`state [C, cells]`: fair bits in the order of `[B, H, W, C]`, from the epoch's data subkey."""
    _, sub = prng.split(control[c.DATA_KEY])
    bits = prng.randint_power_of_two(sub, (shape.cells, shape.channels), 2)
    state[:] = bits.T
