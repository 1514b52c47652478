"""End of the gradient computation: decide whether the step counts, and go on to the next keys."""

import math

import numpy as np

from difflogic.cpu.codegen.compiled import inlined
from difflogic.cpu.codegen.threefry import split
from difflogic.engine import control as c
from difflogic.engine.shape import Array

DATA_KEY, TRAIN_KEY = c.DATA_KEY.start, c.TRAIN_KEY.start
STEP, EPOCH, NONFINITE, SKIPPED = c.STEP, c.EPOCH, c.NONFINITE, c.SKIPPED


@inlined
def commit(losses: Array, squares: Array, finite: Array, control: Array) -> np.float32:
    """The loss: `losses [tiles]` summed in order. Counts the epoch, advances both key chains, and flags a gradient
    (`finite`, a flag per part), their norm (`squares`, a sum per part) or a loss that is not finite: then no optimiser
    step is counted.
    """
    # In float64 and by tiles in their order, then rounded once: the sum of any number of threads.
    total = np.float32(losses.sum())
    good = math.isfinite(total) and math.isfinite(np.float32(squares.sum())) and finite.all()
    control[NONFINITE] = not good
    control[STEP] += good
    control[SKIPPED] += not good
    # The epoch counts whether its step was taken or not: a run has as many epochs as it was asked for, and the keys of
    # the next epoch do not depend on what this one computed.
    control[EPOCH] += 1
    for start in (DATA_KEY, TRAIN_KEY):
        control[start], control[start + 1], _, _ = split(control[start], control[start + 1])
    return total
