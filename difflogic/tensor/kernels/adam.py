"""Adam with gradients clipped by their global norm. Reference implementation of `adam.wgsl`.

Source: Kingma & Ba 2015. As in PyTorch, epsilon is added outside the square root.
"""

import math
from typing import NamedTuple

import numpy as np

from difflogic.engine.shape import Array


class AdamSettings(NamedTuple):
    """Hyperparameters of Adam that are constant during training."""

    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    max_norm: float = np.inf
    """Global norm to which gradients with a larger norm are clipped."""


def adam(
    hyper: AdamSettings,
    rate: Array,
    count: Array,
    square: Array,
    gradient: Array,
    parameter: Array,
    mu: Array,
    nu: Array,
) -> None:
    """Update `parameter`, `mu` and `nu` in place in step number `count`; `square` is the squared gradient norm."""
    beta1, beta2, epsilon, max_norm = hyper
    norm, step = math.sqrt(square), int(count)
    if norm > max_norm:  # not in place, since a gradient may be a broadcast view of one number
        gradient = gradient * (max_norm / norm)
    mu *= beta1
    mu += (1 - beta1) * gradient
    nu *= beta2
    change = np.asarray(gradient * gradient)
    change *= 1 - beta2
    nu += change
    # With c1 = 1 - beta1^t and c2 = 1 - beta2^t, Adam's change is rate * (mu / c1) / (sqrt(nu / c2) + epsilon).
    # Expanded by sqrt(c2), it is (rate * sqrt(c2) / c1) * mu / (sqrt(nu) + epsilon * sqrt(c2)), in which no array is
    # divided by a correction. This saves two passes over memory.
    root = math.sqrt(1 - beta2**step)
    np.sqrt(nu, out=change)
    change += epsilon * root
    np.divide(mu, change, out=change)
    change *= float(rate) * root / (1 - beta1**step)
    parameter -= change
