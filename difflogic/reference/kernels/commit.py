"""End of the gradient computation: decide whether the step counts. Twin of `commit.wgsl`."""

import numpy as np

from difflogic.core import prng
from difflogic.engine import control as c
from difflogic.engine.shape import Array


def commit(loss_partials: Array, control: Array, history: Array) -> None:
    """The loss into the `history [ring, 2]` of (loss, skipped); the epoch is counted, both key chains go on.

    A loss that is not finite raises the flag, if the gradients have not.
    A flagged epoch takes no optimiser step: `STEP` stays, and AdamW leaves everything as it is.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        loss = loss_partials.sum()
    finite = bool(np.isfinite(loss)) and not control[c.NONFINITE]
    history[control[c.EPOCH] % len(history)] = loss, not finite
    control[c.NONFINITE] = not finite
    control[c.STEP] += finite
    control[c.SKIPPED] += not finite
    control[c.EPOCH] += 1
    # A skipped epoch goes on with the next keys as well: with the same batch it would be skipped for ever.
    control[c.DATA_KEY] = prng.split(control[c.DATA_KEY])[0]
    control[c.TRAIN_KEY] = prng.split(control[c.TRAIN_KEY])[0]
