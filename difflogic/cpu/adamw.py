"""Element-wise clip, then AdamW: epsilon outside the root, decoupled decay (Loshchilov & Hutter 2019)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from difflogic.cpu.compiled import inner
from difflogic.cpu.tables import Array
from difflogic.shape import Hyper


class Optimizer(NamedTuple):
    """`difflogic.shape.Hyper` in float32."""

    lr: np.float32
    weight_decay: np.float32
    beta1: np.float32
    beta2: np.float32
    epsilon: np.float32
    clip: np.float32

    @classmethod
    def of(cls, hyper: Hyper) -> Optimizer:
        numbers = (hyper.lr, hyper.weight_decay, hyper.beta1, hyper.beta2, hyper.epsilon, hyper.clip)
        return cls(*(np.float32(number) for number in numbers))


@inner
def power(base: np.float32, exponent: int) -> np.float32:
    """`base ** exponent` by squaring, in float32."""
    result = np.float32(1)
    while exponent:
        if exponent & 1:
            result *= base
        base *= base
        exponent >>= 1
    return result


@inner
def adamw(
    first: int, last: int, optimizer: Optimizer, step: int, gradients: Array, logits: Array, mu: Array, nu: Array
) -> None:
    """The `step`-th step, counted from 1, of gates `first` to `last`, in place; all `[G, 16]`."""
    one = np.float32(1)
    rest1, rest2 = one - optimizer.beta1, one - optimizer.beta2
    scale1, scale2 = one - power(optimizer.beta1, step), one - power(optimizer.beta2, step)
    for gate in range(first, last):
        for kind in range(logits.shape[1]):
            clipped = min(max(gradients[gate, kind], -optimizer.clip), optimizer.clip)
            m = optimizer.beta1 * mu[gate, kind] + rest1 * clipped
            n = optimizer.beta2 * nu[gate, kind] + rest2 * clipped * clipped
            mu[gate, kind], nu[gate, kind] = m, n
            decay = optimizer.weight_decay * logits[gate, kind]
            logits[gate, kind] -= optimizer.lr * ((m / scale1) / (math.sqrt(n / scale2) + optimizer.epsilon) + decay)
