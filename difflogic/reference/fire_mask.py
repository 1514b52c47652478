"""Which cells take their new state in each step of an asynchronous rollout. Twin of `fire_mask.wgsl`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic import prng
from difflogic.shape import Shape

Array = npt.NDArray[Any]


def fire_mask(shape: Shape, fire_rate: float, key: prng.Key, masks: Array) -> None:
    """`masks [T, H*W]` of 0 and 1: each step `key, sub = split(key)`, `uniform(sub) <= fire_rate`."""
    for step in range(shape.steps):
        key, sub = prng.split(key)
        masks[step] = prng.uniform(sub, (shape.cells_per_grid,)) <= np.float32(fire_rate)
