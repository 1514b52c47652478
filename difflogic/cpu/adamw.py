"""Element-wise clip, then AdamW: epsilon outside the root, decoupled decay (Loshchilov & Hutter 2019)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from difflogic.cpu.coefficients import KINDS
from difflogic.cpu.compiled import inner
from difflogic.cpu.kinds import clip, divide, load_kinds, root, splat_kinds
from difflogic.cpu.program import Array
from difflogic.cpu.vectors import add, fma, mul, store
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
    """The `step`-th step, counted from 1, of gates `first` to `last`, in place; all `[16*G]`."""
    one = np.float32(1)
    beta1, beta2 = splat_kinds(optimizer.beta1), splat_kinds(optimizer.beta2)
    rest1, rest2 = splat_kinds(one - optimizer.beta1), splat_kinds(one - optimizer.beta2)
    scale1 = splat_kinds(one - power(optimizer.beta1, step))
    scale2 = splat_kinds(one - power(optimizer.beta2, step))
    least, most = splat_kinds(-optimizer.clip), splat_kinds(optimizer.clip)
    lr, epsilon = splat_kinds(-optimizer.lr), splat_kinds(optimizer.epsilon)
    weight_decay = splat_kinds(optimizer.weight_decay)
    for start in range(first * KINDS, last * KINDS, KINDS):
        g = clip(load_kinds(gradients, start), least, most)
        m = fma(beta1, load_kinds(mu, start), mul(rest1, g))
        n = fma(beta2, load_kinds(nu, start), mul(mul(rest2, g), g))
        store(mu, start, m)
        store(nu, start, n)
        p = load_kinds(logits, start)
        direction = divide(divide(m, scale1), add(root(divide(n, scale2)), epsilon))
        store(logits, start, fma(lr, fma(weight_decay, p, direction), p))
