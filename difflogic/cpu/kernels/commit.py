"""Finish the gradient computation: decide whether the optimiser makes a step, count the epoch, advance random keys."""

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
    """Count the epoch, advance both key chains, and return the loss, the sum of `losses [tiles]`.

    If a gradient (`finite`, a flag per block), the norm of the gradients (`squares`, a sum per block) or the loss is
    not finite, set NONFINITE and count a skipped epoch instead of an optimiser step.
    """
    # Summed in float64, in the order of tiles, and rounded once: the same for any number of threads.
    total = np.float32(losses.sum())
    good = math.isfinite(total) and math.isfinite(np.float32(squares.sum())) and finite.all()
    control[NONFINITE] = not good
    control[STEP] += good
    control[SKIPPED] += not good
    # Skipped epochs count too: a run has as many epochs as requested, and the keys of the next epoch do not depend on
    # results of this one.
    control[EPOCH] += 1
    for start in (DATA_KEY, TRAIN_KEY):
        control[start], control[start + 1], _, _ = split(control[start], control[start + 1])
    return total
