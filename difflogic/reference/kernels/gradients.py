"""Moments of instances -> gradients of logits. Twin of `gradients.wgsl`."""

import numpy as np

from difflogic.core import gates, prng
from difflogic.engine import control as c
from difflogic.engine.events import FaultRates
from difflogic.engine.shape import Array
from difflogic.model.layout import Layout
from difflogic.reference.kernels.coefficients import softmax


def gradients(
    rates: FaultRates, layout: Layout, partials: Array, logits: Array, gradients: Array, control: Array
) -> None:
    """`d_w = TABLE @ moments`, `d_logits = w * (d_w - sum(w * d_w))`, `w = softmax(logits)`; all `[G, 16]`.

    0 for the logits of a gate that is stuck in this epoch, since they change
    nothing. Raises the control block's flag where one of the gradients is not finite.
    """
    moments = np.zeros((layout.gates, 4), dtype=partials.dtype)
    # Replicas of a gate, one to a channel, follow each other and share its logits: their moments are one sum.
    for level in layout.levels:
        instances = partials[level.first_instance : level.first_instance + level.count]
        first, last = level.first_gate, level.first_gate + level.count // level.replicas
        moments[first:last] = instances.reshape(-1, level.replicas, 4).sum(axis=1)
    probs = softmax(logits)
    d_probs = moments @ gates.TABLE.T.astype(moments.dtype)
    # The softmax's adjoint: what all sixteen have in common moves no share, so that the mean is taken off.
    gradients[:] = probs * (d_probs - (probs * d_probs).sum(axis=1, keepdims=True))
    gradients[rates.draw_gates(prng.split(control[c.TRAIN_KEY])[1], layout.gates) > 0] = 0
    control[c.NONFINITE] |= not np.isfinite(gradients).all()
