"""Decide, after the gradients, whether the optimiser makes a step. Reference implementation of `commit.wgsl`."""

import numpy as np

from difflogic.core import prng
from difflogic.engine import control as c
from difflogic.engine.shape import Array


def commit(loss_partials: Array, control: Array, history: Array) -> None:
    """Write (loss, skipped) to the epoch's row of `history [ring, 2]`, count the epoch, and advance both random keys.

    NONFINITE is set if the loss is not finite. If it is set, the optimiser makes no step: STEP and everything that
    AdamW updates are unchanged.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        loss = loss_partials.sum()
    finite = bool(np.isfinite(loss)) and not control[c.NONFINITE]
    history[control[c.EPOCH] % len(history)] = loss, not finite
    control[c.NONFINITE] = not finite
    control[c.STEP] += finite
    control[c.SKIPPED] += not finite
    control[c.EPOCH] += 1
    # A skipped epoch advances the keys too: with the same batch the next one would be skipped again.
    control[c.DATA_KEY] = prng.split(control[c.DATA_KEY])[0]
    control[c.TRAIN_KEY] = prng.split(control[c.TRAIN_KEY])[0]
