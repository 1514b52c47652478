"""Adam, with the gradient shortened where all gradients together are longer than a bound. Twin of `adam.wgsl`.

Source: Kingma & Ba 2015, as PyTorch computes it: epsilon outside the root.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from difflogic.engine.shape import Array
from difflogic.reference.kernels.adamw import power


class Hyper(NamedTuple):
    """What stays the same over a training."""

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
    real = parameter.dtype.type
    beta1, beta2, step = real(hyper.beta1), real(hyper.beta2), int(count)
    if square > hyper.max_norm**2:
        gradient = gradient * (real(hyper.max_norm) / np.sqrt(square))
    mu *= beta1
    mu += (1 - beta1) * gradient
    nu *= beta2
    change = gradient * gradient
    change *= 1 - beta2
    nu += change
    # lr * (mu/(1-b1^t)) / (sqrt(nu/(1-b2^t)) + eps), with the corrections drawn out of both sides.
    root = np.sqrt(1 - power(beta2, step))
    np.sqrt(nu, out=change)
    change += real(hyper.epsilon) * root
    np.divide(mu, change, out=change)
    change *= rate * (root / (1 - power(beta1, step)))
    parameter -= change
