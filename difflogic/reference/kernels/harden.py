"""Gates that are evaluated as their most probable gate alone in this epoch. Twin of `harden.wgsl`."""

from __future__ import annotations

import numpy as np

from difflogic.core import gates, prng
from difflogic.engine import control as c
from difflogic.engine.events import Hardening
from difflogic.engine.shape import Array
from difflogic.reference.kernels.coefficients import softmax


def harden(hardening: Hardening, control: Array, logits: Array, coefficients: Array) -> None:
    """This epoch's `coefficients [G, 4]`: of the hard gate where it is drawn, else of the softmax; `logits [G, 16]`."""
    key = prng.split(control[c.TRAIN_KEY])[1]
    hard = hardening.draw(key, int(control[c.EPOCH]), len(logits))
    soft = softmax(logits) @ gates.TABLE.astype(logits.dtype)
    coefficients[:] = np.where(hard[:, None], gates.TABLE[logits.argmax(axis=-1)], soft)
