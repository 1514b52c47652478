"""The key that an epoch's faults are drawn from. Twin of `draw_faults.wgsl`."""

from difflogic.core import prng
from difflogic.engine import control as c
from difflogic.engine.shape import Array


def draw_faults(control: Array, fault_keys: Array) -> None:
    """`fault_keys [2]`: the epoch's training subkey, kept for the evaluation of its batch."""
    fault_keys[:] = prng.split(control[c.TRAIN_KEY])[1]
