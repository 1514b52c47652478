"""Store the random key of an epoch's faults. Reference implementation of `draw_faults.wgsl`."""

from difflogic.core import prng
from difflogic.engine import control as c
from difflogic.engine.shape import Array


def draw_faults(control: Array, fault_keys: Array) -> None:
    """Store the epoch's training subkey in `fault_keys [2]`, which the evaluation of the epoch's batch uses, too."""
    fault_keys[:] = prng.split(control[c.TRAIN_KEY])[1]
