"""Clip a model's gradients g by global norm, `g / max(1, |g| / clip)`. Reference implementation of `clip_norm.wgsl`.

Source: Pascanu, Mikolov & Bengio 2013.
"""

import numpy as np

from difflogic.engine import control as c
from difflogic.engine.shape import Array, Hyper


def clip_norm(hyper: Hyper, gradients: Array, control: Array) -> None:
    """Scale `gradients [G, 16]` in place, and set NONFINITE in the control block if their norm is not finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        # Divided by the limit first, since squares of gradients above 1e19 would overflow.
        total = np.square(gradients / gradients.dtype.type(hyper.clip)).sum()
    control[c.NONFINITE] |= not np.isfinite(total)
    if np.isfinite(total) and total > 1:
        gradients /= np.sqrt(total)
