"""The model in JAX as in the paper: gathers, `scan` over the steps, gradients by automatic differentiation.

Unlike the paper's code, which mixes sixteen gates for every cell, this code computes a gate from four coefficients.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from difflogic.autodiff import TABLE
from difflogic.engine.batch import Batch
from difflogic.model.circuit import ArraysByNetwork, Circuit

Logits = dict[str, list[Any]]


def coefficients(logits: Any, hard: bool) -> Any:
    """Return the gates' coefficients `[..., out, 4]` for `logits [..., out, 16]`; if `hard`, of the argmax gates."""
    weights = jax.nn.one_hot(logits.argmax(-1), 16) if hard else jax.nn.softmax(logits)
    # With JAX's default precision on a GPU (TF32, ten bits of mantissa), the first loss is 230.83 instead of 231.27.
    return jnp.matmul(weights, TABLE, precision="highest")


def gates(coef: Any, wires: Any, x: Any) -> Any:
    """Compute a layer, `[out]`, from coefficients `[out, 4]`, wires `[2, out]` and inputs `[n_in]`."""
    a, b = x[wires[0]], x[wires[1]]
    return coef[:, 0] + coef[:, 1] * a + coef[:, 2] * b + coef[:, 3] * a * b


def make_rollout(circuit: Circuit, steps: int) -> Any:
    """Make a function `(logits, x [B, H, W, C], masks [T, H, W, 1], hard)` that returns the last state."""
    wires = {name: [jnp.asarray(layer) for layer in layers] for name, layers in circuit.wires.items()}

    def perceive_one(coef: list[Any], pairs: list[Any], patch: Any) -> Any:
        """Return the outputs `[S]` of one perception kernel for the patch `[9]` of one channel."""
        for layer, pair in zip(coef, pairs, strict=True):
            patch = gates(layer, pair, patch)
        return patch

    def cell(coef: dict[str, list[Any]], patch: Any) -> Any:
        """Return the next state of a cell, `[C]`, from its patch `[9, C]`."""
        by_kernel = jax.vmap(perceive_one, in_axes=(0, 0, None))
        by_channel = jax.vmap(by_kernel, in_axes=(None, None, 1))
        perceived = by_channel(coef["perceive"], wires["perceive"], patch)  # [C, K, S]
        values = jnp.concatenate([patch[4], perceived.transpose(0, 2, 1).reshape(-1)])
        for layer, pair in zip(coef["update"], wires["update"], strict=True):
            values = gates(layer, pair, values)
        return values

    # Vectorised over the batch, the rows and the columns.
    cells = jax.vmap(jax.vmap(jax.vmap(cell, in_axes=(None, 0)), in_axes=(None, 0)), in_axes=(None, 0))

    def rollout(logits: Logits, x: Any, masks: Any, hard: bool = False) -> Any:
        coef = jax.tree.map(lambda layer: coefficients(layer, hard), logits)

        def step(state: Any, mask: Any) -> tuple[Any, None]:
            new = cells(coef, patches(state, circuit.periodic))
            return (new if mask is None else jnp.where(mask > 0, new, state)), None

        return jax.lax.scan(step, x, masks, length=steps)[0]

    return rollout


def patches(state: Any, periodic: bool) -> Any:
    """Return the patches `[B, H, W, 9, C]` of a state `[B, H, W, C]`."""
    height, width = state.shape[1:3]
    padded = jnp.pad(state, ((0, 0), (1, 1), (1, 1), (0, 0)), mode="wrap" if periodic else "constant")
    shifted = [padded[:, dy : dy + height, dx : dx + width] for dy in range(3) for dx in range(3)]
    return jnp.stack(shifted, axis=3)


def soft_loss(rollout: Any, loss_channels: int, logits: Any, x: Any, y: Any, masks: Any = None) -> Any:
    """Return the sum of squared errors over the loss channels after the last step."""
    return jnp.square(rollout(logits, x, masks)[..., :loss_channels] - y).sum()


def gradients(circuit: Circuit, batch: Batch, rollout_of: Any = make_rollout) -> tuple[float, ArraysByNetwork]:
    """Return loss and gradients of one batch, as `Engine.loss_and_gradients` does."""
    rollout = rollout_of(circuit, batch.steps)
    masks = None if batch.masks is None else jnp.asarray(batch.masks)
    y = np.asarray(batch.y)[..., : batch.loss_channels]
    value = jax.jit(jax.value_and_grad(partial(soft_loss, rollout, batch.loss_channels)))
    loss, grads = value(as_arrays(circuit), jnp.asarray(batch.x), jnp.asarray(y), masks)
    return float(loss), {name: [np.asarray(layer) for layer in layers] for name, layers in grads.items()}


def as_arrays(circuit: Circuit) -> Logits:
    """Return the logits of a circuit as float32 JAX arrays."""
    return {name: [jnp.asarray(layer, jnp.float32) for layer in layers] for name, layers in circuit.logits.items()}
