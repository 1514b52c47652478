"""Train step in JAX for the rollouts of `jax_plain` and `jax_tuned`: loss, gradients, clip, AdamW, and hard loss."""

from __future__ import annotations

import time
from functools import partial
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.rivals.problem import Problem
from difflogic.autodiff.jax_model import as_arrays, soft_loss
from difflogic.engine.batch import Batch
from difflogic.engine.shape import Hyper
from difflogic.model.circuit import Circuit


def last_state(module: ModuleType, circuit: Circuit, batch: Batch, hard: bool) -> np.ndarray:
    """Return the state after all steps, `[B, H, W, C]`."""
    rollout = jax.jit(module.make_rollout(circuit, batch.steps), static_argnums=3)
    masks = None if batch.masks is None else jnp.asarray(batch.masks)
    return np.asarray(rollout(as_arrays(circuit), jnp.asarray(batch.x), masks, hard))


class Training:
    """Training run in JAX; `module` implements the rollout."""

    def __init__(self, module: ModuleType, problem: Problem) -> None:
        config = problem.config
        rollout = module.make_rollout(problem.circuit, config.task.steps)
        hyper, channels = problem.hyper, config.task.loss_channels
        target = jnp.asarray(problem.target())
        shape = (config.train.batch, config.task.height, config.task.width, config.model.channels)

        def step(state: Any, x: Any) -> Any:
            logits = state[0]
            soft, grads = jax.value_and_grad(partial(soft_loss, rollout, channels))(logits, x, target)
            hard = (rollout(logits, x, None, True)[..., :channels] != target).sum()
            return _adamw(hyper, state, grads), soft, hard

        def drawn(state: Any, key: Any) -> Any:
            return step(state, jax.random.bernoulli(key, shape=shape).astype(jnp.float32))

        self._given = jax.jit(step)
        self._drawn = jax.jit(drawn, donate_argnums=0)
        logits = as_arrays(problem.circuit)
        mu, nu = (jax.tree.map(jnp.zeros_like, logits) for _ in range(2))
        self._state = (logits, mu, nu, jnp.zeros((), jnp.int32))
        self._key = jax.random.PRNGKey(0)
        self.device = f"{jax.devices()[0].device_kind}, jax {jax.__version__}"

    def step(self, x: np.ndarray) -> tuple[float, int]:
        """Run a train step from the initial states `x`; return the soft and the hard loss before the step."""
        self._state, soft, hard = self._given(self._state, jnp.asarray(x))
        return float(soft), int(hard)

    def repeat(self, count: int) -> float:
        """Run `count` train steps with random initial states; return the mean seconds of a step."""
        begin = time.perf_counter()
        for _ in range(count):
            self._key, sub = jax.random.split(self._key)
            self._state, soft, hard = self._drawn(self._state, sub)
        jax.block_until_ready((self._state, soft, hard))
        return (time.perf_counter() - begin) / count


def _adamw(hyper: Hyper, state: Any, grads: Any) -> Any:
    logits, mu, nu, count = state
    count = count + 1
    grads = jax.tree.map(lambda g: jnp.clip(g, -hyper.clip, hyper.clip), grads)
    mu = jax.tree.map(lambda m, g: hyper.beta1 * m + (1 - hyper.beta1) * g, mu, grads)
    nu = jax.tree.map(lambda v, g: hyper.beta2 * v + (1 - hyper.beta2) * g * g, nu, grads)
    scale1, scale2 = 1 - hyper.beta1**count, 1 - hyper.beta2**count

    def moved(p: Any, m: Any, v: Any) -> Any:
        return p - hyper.lr * ((m / scale1) / (jnp.sqrt(v / scale2) + hyper.epsilon) + hyper.weight_decay * p)

    return jax.tree.map(moved, logits, mu, nu), mu, nu, count
