"""Rollout of the model in JAX, optimized.

Cells are the last axis: a gather copies complete rows, and every operation runs over contiguous cells. The order of the
perception outputs is part of the wires of the first update layer. A custom gradient of a layer gathers from a node's
readers, where autodiff would scatter. Each CA step is recomputed in the backward pass, since reading stored nodes takes
longer. The hard rollout computes with bytes.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from difflogic.autodiff import TABLE
from difflogic.autodiff.jax_model import Logits, coefficients
from difflogic.model.circuit import Circuit

ON_PROCESSOR = jax.default_backend() == "cpu"


def readers(pairs: np.ndarray, n_in: int) -> np.ndarray:
    """Return the edges of every input, `[degree, n_in]`, numbered `side*out + gate`, padded with `2*out`."""
    edges = pairs.reshape(-1)
    found = [np.flatnonzero(edges == node) for node in range(n_in)]
    table = np.full((max(1, *map(len, found)), n_in), len(edges), dtype=np.int32)
    for node, each in enumerate(found):
        table[: len(each), node] = each
    return table


def rows(x: Any, index: Any) -> Any:
    """Return `x[index]` without JAX's clamping of the index of each element."""
    return x.at[index].get(mode="promise_in_bounds")


@jax.custom_vjp
def soft_layer(coef: Any, x: Any, pairs: Any, fan: Any) -> Any:
    """Return the outputs `[out, N]` of coefficients `[out, 4]`, inputs `[n_in, N]`, wires `[2, out]` and readers."""
    c0, ca, cb, cab = (coef[:, index, None] for index in range(4))
    a, b = rows(x, pairs[0]), rows(x, pairs[1])
    return c0 + ca * a + (cb + cab * a) * b


def _saved(coef: Any, x: Any, pairs: Any, fan: Any) -> Any:
    return soft_layer(coef, x, pairs, fan), (coef, x, pairs, fan)


def _backward(saved: Any, d: Any) -> Any:
    coef, x, pairs, fan = saved
    _, ca, cb, cab = (coef[:, index, None] for index in range(4))
    a, b = rows(x, pairs[0]), rows(x, pairs[1])
    moments = jnp.stack([_sums(d), _dots(d, a), _dots(d, b), _dots(d * a, b)], axis=1)
    none = jnp.zeros((1, d.shape[1]), d.dtype)
    edges = jnp.concatenate([d * (ca + cab * b), d * (cb + cab * a), none])
    return moments, sum(rows(edges, row) for row in fan), None, None


def _dots(one: Any, other: Any) -> Any:
    # On a CPU the sums are matrix products, since XLA does not vectorise sums over rows there. On a GPU it fuses them.
    return jnp.einsum("on,on->o", one, other) if ON_PROCESSOR else (one * other).sum(1)


def _sums(d: Any) -> Any:
    return d @ jnp.ones(d.shape[1]) if ON_PROCESSOR else d.sum(1)


soft_layer.defvjp(_saved, _backward)


def hard_layer(form: Any, x: Any, pairs: Any, fan: Any) -> Any:
    """Return the outputs for bytes of 0 and 1; `form [out, 4]` is the algebraic normal form of each gate."""
    c0, ca, cb, cab = (form[:, index, None] for index in range(4))
    a, b = rows(x, pairs[0]), rows(x, pairs[1])
    return c0 ^ (ca & a) ^ (cb & b) ^ (cab & a & b)


def _tables(wires: list[np.ndarray], n_in: int) -> list[tuple[Any, Any]]:
    """Return the wires `[..., 2, out]` and the readers `[..., degree, n_in]` of each layer."""
    found = []
    for pairs in wires:
        fans = [readers(each, n_in) for each in pairs.reshape(-1, *pairs.shape[-2:])]
        degree = max(map(len, fans))
        padded = [np.pad(fan, ((0, degree - len(fan)), (0, 0)), constant_values=2 * pairs.shape[-1]) for fan in fans]
        stacked = np.stack(padded).reshape(*pairs.shape[:-2], degree, n_in)
        found.append((jnp.asarray(pairs, jnp.int32), jnp.asarray(stacked)))
        n_in = pairs.shape[-1]
    return found


def _update_wires(circuit: Circuit) -> list[np.ndarray]:
    """Return the update network's wires for the inputs `[centre] ++ [out[k, s, c] at C + (k*S + s)*C + c]`."""
    channels, kernels, outputs = circuit.channels, circuit.kernels, circuit.perceive[-1].shape[1]
    order = np.arange(kernels * outputs * channels).reshape(kernels, outputs, channels).transpose(2, 1, 0)
    moved = np.concatenate([np.arange(channels), channels + order.reshape(-1)])
    return [moved[circuit.update_wires[0]], *circuit.update_wires[1:]]


def make_rollout(circuit: Circuit, steps: int) -> Any:
    """Return the function `(logits, x [B, H, W, C], masks [T, H, W, 1], hard) -> [B, H, W, C]` to the last state."""
    channels, kernels = circuit.channels, circuit.kernels
    shared = all((layer == layer[:1]).all() for layer in circuit.perceive_wires)
    perceive = _tables([layer[0] if shared else layer for layer in circuit.perceive_wires], 9)
    inputs = channels + kernels * circuit.perceive[-1].shape[1] * channels
    update = _tables(_update_wires(circuit), inputs)
    own = None if shared else 0

    def network(layer: Any, coef: Any, patch: Any) -> Any:
        """Return the next state `[C, B, H, W]` from patches `[9, C, B, H, W]`."""
        seen = jnp.broadcast_to(patch.reshape(9, -1), (kernels, 9, patch[0].size))
        for each, tables in zip(coef["perceive"], perceive, strict=True):
            seen = jax.vmap(layer, in_axes=(0, 0, own, own))(each, seen, *tables)
        values = jnp.concatenate([patch[4].reshape(channels, -1), seen.reshape(inputs - channels, -1)])
        for each, tables in zip(coef["update"], update, strict=True):
            values = layer(each, values, *tables)
        return values.reshape(patch.shape[1:])

    soft = jax.checkpoint(partial(network, soft_layer))
    hard_network = partial(network, hard_layer)
    # Modulo 2, the coefficients are those of the algebraic normal form.
    forms = jnp.asarray(TABLE.astype(np.int64) % 2, jnp.uint8)

    def rollout(logits: Logits, x: Any, masks: Any, hard: bool = False) -> Any:
        state = jnp.moveaxis(x, -1, 0)
        if hard:
            coef = jax.tree.map(lambda layer: forms[layer.argmax(-1)], logits)
            run, state = hard_network, state.astype(jnp.uint8)
        else:
            coef, run = jax.tree.map(lambda layer: coefficients(layer, False), logits), soft

        def step(state: Any, mask: Any) -> tuple[Any, None]:
            new = run(coef, patches(state, circuit.periodic))
            return (new if mask is None else jnp.where(mask[..., 0] > 0, new, state)), None

        last = jax.lax.scan(step, state, masks, length=steps)[0]
        return jnp.moveaxis(last, 0, -1)

    return rollout


def patches(state: Any, periodic: bool) -> Any:
    """Return the patches `[9, C, B, H, W]` of a state `[C, B, H, W]`."""
    height, width = state.shape[2:]
    padded = jnp.pad(state, ((0, 0), (0, 0), (1, 1), (1, 1)), mode="wrap" if periodic else "constant")
    return jnp.stack([padded[:, :, dy : dy + height, dx : dx + width] for dy in range(3) for dx in range(3)])
