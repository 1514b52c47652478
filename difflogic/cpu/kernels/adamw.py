"""Clip gradients element by element, then update the logits with AdamW.

Epsilon is outside the square root, and the weight decay is decoupled (Loshchilov & Hutter 2019).
"""

import numpy as np

from difflogic.core.gates import GATE_COUNT
from difflogic.cpu.codegen.compiled import inlined
from difflogic.cpu.codegen.gate_vectors import clip, divide, load_gate_vector, root, splat_gate_vector, subtract
from difflogic.cpu.codegen.vectors import add, fma, mul, peek, store, store_sums
from difflogic.cpu.kernels.buffers import Buffers, Optimizer
from difflogic.engine import control as c


@inlined
def power(base: np.float32, exponent: int) -> np.float32:
    """Return `base ** exponent` in float32, by repeated squaring."""
    # Not `**`, which calls the system's pow, whose last bit differs between libraries. Products are rounded alike
    # everywhere, so that all engines get the same bits.
    result = np.float32(1)
    while exponent:
        if exponent & 1:
            result *= base
        base *= base
        exponent >>= 1
    return result


@inlined
def learning_rate(optimizer: Optimizer, epoch: int) -> np.float32:
    """Return the learning rate of epoch number `epoch`; the first epoch is number 1."""
    one, length = np.float32(1), max(1, optimizer.lr_to - optimizer.lr_from)
    # The decay is 0 up to lr_from and complete from lr_to on: if it lasts from 200 to 400, it is half in epoch 300.
    # Without a schedule the length is 1, which avoids a division by 0.
    fallen = min(max(int(epoch) - optimizer.lr_from, 0), length)
    return optimizer.lr * (one - (one - optimizer.lr_end) * (np.float32(fallen) / np.float32(length)))


@inlined
def adamw(first: int, last: int, gates: int, buffers: Buffers) -> None:
    """Update rows `first` to `last` of `logits`, `mu` and `nu` in place; `control` already counts this step.

    The first `gates` rows may be input-wise. `gradients` is overwritten.
    """
    optimizer, control, table, gradients = buffers.optimizer, buffers.control, buffers.table, buffers.gradients
    logits, mu, nu = buffers.logits, buffers.mu, buffers.nu
    one = np.float32(1)
    beta1, beta2 = splat_gate_vector(optimizer.beta1), splat_gate_vector(optimizer.beta2)
    rest1, rest2 = splat_gate_vector(one - optimizer.beta1), splat_gate_vector(one - optimizer.beta2)
    step = control[c.STEP]
    # Bias correction: the moments begin at 0, so that early ones are too small. After one step with beta1 0.9, mu is a
    # tenth of the gradient, and division by 1 - 0.9^1 corrects it. The scales are the same for all gates.
    scale1 = splat_gate_vector(one - power(optimizer.beta1, step))
    scale2 = splat_gate_vector(one - power(optimizer.beta2, step))
    least, most = splat_gate_vector(-optimizer.clip), splat_gate_vector(optimizer.clip)
    lr, epsilon = splat_gate_vector(-learning_rate(optimizer, control[c.EPOCH])), splat_gate_vector(optimizer.epsilon)
    weight_decay = splat_gate_vector(optimizer.weight_decay)
    # The columns of `core.gates.INPUT_WISE`: the rows of the truth table minus a half.
    row00 = subtract(load_gate_vector(table, 0), splat_gate_vector(np.float32(0.5)))
    row10, row01 = add(row00, load_gate_vector(table, GATE_COUNT)), add(row00, load_gate_vector(table, 2 * GATE_COUNT))
    row11 = add(add(row10, load_gate_vector(table, 2 * GATE_COUNT)), load_gate_vector(table, 3 * GATE_COUNT))
    # The sixteen logits of a gate are one AVX-512 register: seven loads and stores per gate, without an inner loop.
    for start in range(first * GATE_COUNT, last * GATE_COUNT, GATE_COUNT):
        is_input_wise = optimizer.input_wise and start < gates * GATE_COUNT
        if is_input_wise:  # the gradients of the gate's four numbers take the first places, and the others are 0
            g = load_gate_vector(gradients, start)
            store(gradients, start, splat_gate_vector(np.float32(0)))
            store_sums(gradients, start, mul(row00, g), mul(row01, g), mul(row10, g), mul(row11, g))
        g = clip(load_gate_vector(gradients, start), least, most)
        m = fma(beta1, load_gate_vector(mu, start), mul(rest1, g))
        n = fma(beta2, load_gate_vector(nu, start), mul(mul(rest2, g), g))
        store(mu, start, m)
        store(nu, start, n)
        p = load_gate_vector(logits, start)
        direction = divide(divide(m, scale1), add(root(divide(n, scale2)), epsilon))
        if is_input_wise:
            store(gradients, start, direction)
            direction = mul(row00, splat_gate_vector(peek(gradients, start)))
            direction = fma(row01, splat_gate_vector(peek(gradients, start + 1)), direction)
            direction = fma(row10, splat_gate_vector(peek(gradients, start + 2)), direction)
            direction = fma(row11, splat_gate_vector(peek(gradients, start + 3)), direction)
        # Decoupled decay: it is subtracted from the logit itself, and is not part of the gradient in the moments. `lr`
        # is the negative rate, so that one fused multiply-add does the step.
        store(logits, start, fma(lr, fma(weight_decay, p, direction), p))
