"""The adjoint identity: `<J v, w> == <v, J^T w>`, where `J v` comes from a forward-mode product that is written here.

It needs no step size, so it holds to the last digits of float64; finite differences could not tell 1e-9.
"""

from __future__ import annotations

import numpy as np
import pytest

from difflogic.core.gates import TABLE
from difflogic.engine.batch import Batch
from difflogic.engine.events import Damage
from difflogic.model.circuit import ArraysByNetwork, Circuit
from difflogic.reference.engine import ReferenceEngine
from tests.random_circuits import bits, random_circuit

Dual = np.ndarray
"""`[2, ...]`: a value and its tangent."""

STEPS, SHAPE = 4, (2, 5, 7, 3)


def coefficients(logits: np.ndarray, direction: np.ndarray) -> Dual:
    """Dual `[2, ..., out, 4]` of a layer's coefficients."""
    probs = np.exp(logits - logits.max(axis=-1, keepdims=True))
    probs /= probs.sum(axis=-1, keepdims=True)
    d_probs = probs * (direction - (probs * direction).sum(axis=-1, keepdims=True))
    return np.stack([probs, d_probs]) @ TABLE


def layer(coef: Dual, wires: np.ndarray, x: Dual) -> Dual:
    """`[2, out, 4]`, `[2, out]`, `[2, n_in, cells]` -> `[2, out, cells]`, by the product rule."""
    (a, b), (d_a, d_b) = x[0, wires], x[1, wires]
    (c0, ca, cb, cab), (d_c0, d_ca, d_cb, d_cab) = np.moveaxis(coef, -1, 1)[..., None]
    value = c0 + ca * a + cb * b + cab * a * b
    tangent = d_c0 + d_ca * a + d_cb * b + d_cab * a * b + ca * d_a + cb * d_b + cab * (d_a * b + a * d_b)
    return np.stack([value, tangent])


def patches(state: Dual, periodic: bool) -> Dual:
    """`[2, B, H, W, C]` -> `[2, 9, C, cells]`."""
    padded = np.pad(state, ((0, 0), (0, 0), (1, 1), (1, 1), (0, 0)), mode="wrap" if periodic else "constant")
    height, width = state.shape[2:4]
    shifted = [padded[:, :, dy : dy + height, dx : dx + width] for dy in range(3) for dx in range(3)]
    return np.moveaxis(np.stack(shifted, axis=1), -1, 2).reshape(2, 9, state.shape[-1], -1)


def step(circuit: Circuit, coef: dict[str, list[Dual]], state: Dual) -> Dual:
    patch = patches(state, circuit.periodic)
    seen = np.empty((2, circuit.channels, circuit.perceive[-1].shape[1], circuit.kernels, patch.shape[-1]))
    for channel in range(circuit.channels):
        for kernel in range(circuit.kernels):
            values = patch[:, :, channel]
            for each, wires in zip(coef["perceive"], circuit.perceive_wires, strict=True):
                values = layer(each[:, kernel], wires[kernel], values)
            seen[:, channel, :, kernel] = values
    values = np.concatenate([patch[:, 4], seen.reshape(2, -1, patch.shape[-1])], axis=1)
    for each, wires in zip(coef["update"], circuit.update_wires, strict=True):
        values = layer(each, wires, values)
    return np.moveaxis(values, 1, -1).reshape(state.shape)


def forward_product(circuit: Circuit, direction: ArraysByNetwork, batch: Batch) -> Dual:
    """All states and `J v`, `[2, T+1, B, H, W, C]`, before they are damaged."""
    pairs = {name: zip(circuit.logits[name], direction[name], strict=True) for name in direction}
    coef = {name: [coefficients(*pair) for pair in layers] for name, layers in pairs.items()}
    x = np.asarray(batch.x)
    states = [np.stack([x, np.zeros_like(x)])]
    for at in range(batch.steps):
        state = states[-1]
        if batch.damage is not None and at in batch.damage.steps:
            state = state * batch.damage.kept(batch.damage.steps.index(at), *x.shape[1:3])[..., None]
        new = step(circuit, coef, state)
        states.append(new if batch.masks is None else np.where(np.asarray(batch.masks)[at] > 0, new, state))
    return np.stack(states, axis=1)


@pytest.mark.parametrize("per_kernel", [False, True])
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("damage_steps", [(), (0, 2)])
@pytest.mark.parametrize("loss_steps", [(), (2, 4)])
def test_adjoint_identity(
    per_kernel: bool, periodic: bool, masked: bool, damage_steps: tuple[int, ...], loss_steps: tuple[int, ...]
) -> None:
    """Of all states that are judged, in a random direction of all logits."""
    rng = np.random.default_rng(7)
    circuit = random_circuit(rng, SHAPE[-1], periodic=periodic, per_kernel=per_kernel, scale=1.0, dtype=np.float64)
    direction = {name: [rng.standard_normal(each.shape) for each in circuit.logits[name]] for name in circuit.logits}
    corners = np.stack([rng.integers(0, side, (len(damage_steps), SHAPE[0])) for side in SHAPE[1:3]], axis=-1)
    batch = Batch(
        rng.random(SHAPE),
        rng.standard_normal(SHAPE),
        STEPS,
        loss_channels=SHAPE[-1],
        masks=bits(rng, STEPS, *SHAPE[1:3], 1) if masked else None,
        loss_steps=loss_steps,
        damage=Damage(3, damage_steps, corners) if damage_steps else None,
    )
    states, tangents = forward_product(circuit, direction, batch)
    loss, gradients = ReferenceEngine(np.float64).loss_and_gradients(circuit, batch)

    w = {at: 2 * (states[at] - batch.y) for at in loss_steps or (STEPS,)}
    assert loss == pytest.approx(sum(np.sum(each**2) / 4 for each in w.values()), rel=1e-12)
    forward = [tangents[at] * each for at, each in w.items()]
    backward = [v * g for name in direction for v, g in zip(direction[name], gradients[name], strict=True)]
    allowed = 1e-12 * sum(np.abs(each).sum() for each in (*forward, *backward))
    assert abs(sum(map(np.sum, forward)) - sum(map(np.sum, backward))) <= allowed
