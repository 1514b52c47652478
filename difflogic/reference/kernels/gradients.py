"""Gradients of the logits from the moments of instances. Reference implementation of `gradients.wgsl`."""

import numpy as np

from difflogic.core import gates, prng, wiring
from difflogic.engine import control as c
from difflogic.engine.events import FaultRates
from difflogic.engine.shape import Array
from difflogic.model.layout import Layout
from difflogic.reference.kernels.coefficients import softmax


def gradients(
    rates: FaultRates, layout: Layout, partials: Array, logits: Array, gradients: Array, control: Array
) -> None:
    """Compute `d_w = TABLE @ moments`, `d_logits = w * (d_w - sum(w * d_w))`, `w = softmax(logits)`; all `[P, 16]`.

    For candidates, `d_w` are the moments themselves, `partials [I, 4 + 2k]`. The gradients of a gate that is stuck in
    this epoch are 0. If a gradient is not finite, NONFINITE is set in the control block.
    """
    moments = np.zeros((layout.gates, partials.shape[1]), dtype=partials.dtype)
    # Instances of a gate, one per channel, are consecutive and share its logits: their moments are added.
    for level in layout.levels:
        instances = partials[level.first_instance : level.first_instance + level.count]
        first, last = level.first_gate, level.first_gate + level.count // level.replicas
        moments[first:last] = instances.reshape(-1, level.replicas, partials.shape[1]).sum(axis=1)
    is_stuck = rates.draw_gates(prng.split(control[c.TRAIN_KEY])[1], layout.gates) > 0
    d_probs = moments[:, :4] @ gates.TABLE.T.astype(moments.dtype)
    gradients[: layout.gates] = d_softmax(logits[: layout.gates], d_probs)
    gradients[: layout.gates][is_stuck] = 0
    candidates = layout.wire_logits(logits)
    if candidates is not None:
        d_candidates = d_softmax(candidates, moments[:, 4:].reshape(candidates.shape))
        d_candidates[is_stuck] = 0
        gradients[layout.gates :] = wiring.rows(d_candidates)
    control[c.NONFINITE] |= not np.isfinite(gradients).all()


def d_softmax(logits: Array, d_probs: Array) -> Array:
    """Return the adjoint of logits `[..., n]` from the adjoint `d_probs` of their softmax."""
    probs = softmax(logits)
    # A constant added to all logits changes no probability, so the mean is subtracted.
    return np.asarray(probs * (d_probs - (probs * d_probs).sum(axis=-1, keepdims=True)))
