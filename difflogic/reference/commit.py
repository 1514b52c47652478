"""End of the gradient computation: decide whether the step counts. Twin of `commit.wgsl`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic import control as c
from difflogic import prng

Array = npt.NDArray[Any]


def commit(loss: float, gradients: Array, control: Array) -> None:
    """Count the epoch, advance both key chains, and flag a gradient or loss that is not finite.

    A flagged epoch takes no optimiser step: `STEP` stays, and AdamW leaves everything as it is.
    """
    finite = bool(np.isfinite(loss) and np.isfinite(gradients).all())
    control[c.NONFINITE] = not finite
    control[c.STEP] += finite
    control[c.SKIPPED] += not finite
    control[c.EPOCH] += 1
    control[c.DATA_KEY] = prng.split(control[c.DATA_KEY])[0]
    control[c.TRAIN_KEY] = prng.split(control[c.TRAIN_KEY])[0]
