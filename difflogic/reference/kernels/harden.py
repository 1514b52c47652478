"""Coefficients of an epoch in which some gates are stuck or hard. Reference implementation of `harden.wgsl`."""

import numpy as np

from difflogic.core import gates, prng
from difflogic.core.wiring import one_hot
from difflogic.engine import control as c
from difflogic.engine.events import FaultRates, Hardening
from difflogic.engine.shape import Array
from difflogic.reference.kernels.coefficients import softmax


def harden(
    hardening: Hardening,
    rates: FaultRates,
    control: Array,
    logits: Array,
    coefficients: Array,
    candidates: Array | None = None,
    shares: Array | None = None,
) -> None:
    """Compute this epoch's `coefficients [G, 4]` from `logits [G, 16]`.

    A stuck gate has the coefficients of a constant, a hard gate those of its most probable function, and any other gate
    those of the softmax. `shares [G, 2, k]` are one-hot for hard gates, else the softmax of `candidates`.
    """
    key = prng.split(control[c.TRAIN_KEY])[1]
    hard = hardening.draw(key, int(control[c.EPOCH]), len(logits))
    if candidates is not None and shares is not None:
        shares[:] = np.where(hard[:, None, None], one_hot(candidates), softmax(candidates))
    soft = softmax(logits) @ gates.TABLE.astype(logits.dtype)
    coefficients[:] = np.where(hard[:, None], gates.TABLE[logits.argmax(axis=-1)], soft)
    stuck = rates.draw_gates(key, len(logits))
    coefficients[stuck > 0] = 0
    coefficients[stuck == 2, 0] = 1
