"""Clip gradients element by element, then update the logits with AdamW. Reference implementation of `adamw.wgsl`.

Source: Loshchilov & Hutter 2019, as optax computes it: epsilon outside the root, decoupled decay.
"""

from typing import Any

import numpy as np

from difflogic.core.gates import INPUT_WISE
from difflogic.engine import control as c
from difflogic.engine.shape import Array, Hyper


def power(base: Any, exponent: int) -> Any:
    """Return `base ** exponent` by repeated squaring in the precision of `base`, bit for bit as on the GPU."""
    result = type(base)(1)
    while exponent:
        if exponent & 1:
            result = result * base
        base = base * base
        exponent >>= 1
    return result


def learning_rate(hyper: Hyper, epoch: int, real: type[np.floating[Any]]) -> Any:
    """Return the learning rate of `epoch`, counted from 1, as type `real`; it changes from `lr` to `lr_end * lr`."""
    length = max(1, hyper.lr_to - hyper.lr_from)
    fallen = min(max(epoch - hyper.lr_from, 0), length)
    return real(hyper.lr) * (1 - (1 - real(hyper.lr_end)) * (real(fallen) / real(length)))


def adamw(hyper: Hyper, control: Array, gradients: Array, logits: Array, mu: Array, nu: Array) -> None:
    """Update `logits`, `mu` and `nu [G, 16]` in place, unless NONFINITE is set in the control block.

    For input-wise gates, only the first four columns of `mu` and `nu` contain moments, those of a gate's four numbers.
    """
    if control[c.NONFINITE]:
        return
    real = logits.dtype.type
    step = int(control[c.STEP])
    beta1, beta2 = real(hyper.beta1), real(hyper.beta2)
    # The logits of an input-wise gate are sums of four numbers. So a number's gradient is a sum over logits, and a step
    # of the numbers changes each logit by the same sums.
    sums = INPUT_WISE.astype(real) if hyper.input_wise else np.eye(logits.shape[1], dtype=real)
    clipped = np.clip(gradients @ sums, -real(hyper.clip), real(hyper.clip))
    mu, nu = mu[:, : sums.shape[1]], nu[:, : sums.shape[1]]
    # Moments of gates without gradient underflow to 0.
    with np.errstate(under="ignore"):
        mu[:] = beta1 * mu + (1 - beta1) * clipped
        nu[:] = beta2 * nu + (1 - beta2) * clipped * clipped
        mu_hat = mu / (1 - power(beta1, step))
        nu_hat = nu / (1 - power(beta2, step))
        # Decoupled decay: as part of the gradient it would be divided by the gradient's magnitude.
        decay = real(hyper.weight_decay) * logits
        lr = learning_rate(hyper, int(control[c.EPOCH]), real)
        logits -= lr * (mu_hat / (np.sqrt(nu_hat) + real(hyper.epsilon)) @ sums.T + decay)
