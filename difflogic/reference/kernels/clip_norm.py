"""Clip by the global norm: `g / max(1, |g| / clip)` over all of a model's gradients. Twin of `clip_norm.wgsl`.

Source: Pascanu, Mikolov & Bengio 2013.
"""

import numpy as np

from difflogic.engine import control as c
from difflogic.engine.shape import Array, Hyper


def clip_norm(hyper: Hyper, gradients: Array, control: Array) -> None:
    """Shorten `gradients [G, 16]` in place. Raises the control block's flag where their norm is not finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        # Divided by the bound first: the squares of gradients past 1e19 would overflow, which shares of the bound
        # rarely do.
        total = np.square(gradients / gradients.dtype.type(hyper.clip)).sum()
    control[c.NONFINITE] |= not np.isfinite(total)
    if np.isfinite(total) and total > 1:
        gradients /= np.sqrt(total)
