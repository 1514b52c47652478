"""Adam, with the gradient shortened where all gradients together are longer than a bound. Twin of `adam.wgsl`.

Source: Kingma & Ba 2015, as PyTorch computes it: epsilon outside the root.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from difflogic.engine.shape import Array


class Hyper(NamedTuple):
    """Hyperparameters stay the same over a training."""

    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    max_norm: float = np.inf
    """The bound on the root of `square`."""


def adam(
    hyper: Hyper,
    rate: Array,
    count: Array,
    square: Array,
    gradient: Array,
    parameter: Array,
    mu: Array,
    nu: Array,
) -> None:
    """The step number `count` on parameter, mu and nu, in place; `square`: the sum of all gradients' squares."""
    beta1, beta2, epsilon, max_norm = hyper
    norm, step = math.sqrt(square), int(count)
    if norm > max_norm:
        gradient = gradient * (max_norm / norm)
    mu *= beta1
    mu += (1 - beta1) * gradient
    nu *= beta2
    change = gradient * gradient
    change *= 1 - beta2
    nu += change
    # rate * (mu/(1-b1^t)) / (sqrt(nu/(1-b2^t)) + eps), with the corrections drawn to the numbers before the arrays.
    root = math.sqrt(1 - beta2**step)
    np.sqrt(nu, out=change)
    change += epsilon * root
    np.divide(mu, change, out=change)
    change *= float(rate) * root / (1 - beta1**step)
    parameter -= change
