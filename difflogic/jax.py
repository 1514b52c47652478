"""Circuits as functions that JAX differentiates and compiles around. Needs the extra `jax`.

layer = difflogic.jax.circuit_function(difflogic.Circuit.feed_forward([64, 256, 100], seed=0), (32,))
gradients = jax.grad(lambda logits: layer(logits, bits).sum())(circuit.flat_logits())
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any

import numpy as np

from difflogic.devices.device import Device
from difflogic.errors import MissingPackagesError
from difflogic.model.circuit import Circuit

try:
    import jax
except ImportError as error:
    raise MissingPackagesError.of("difflogic.jax", "jax", error.name) from error


def circuit_function(
    circuit: Circuit,
    grid: Sequence[int],
    steps: int = 1,
    hard: bool = False,
    every_state: bool = False,
    device: Device | str = "cpu",
) -> Callable[[Any, Any], Any]:
    """`y = f(logits, x)`, of logits `[G, 16]` and `x` `[*grid, C]`: see `CircuitFunction`.

    Its gradients with respect to both are known to `jax.grad`, and it may stand within `jax.jit`; difflogic computes
    on `device`, whatever device JAX's arrays are on. Raises as `Engine.open_function` does.
    """
    function = Device(str(device)).open().open_function(circuit, grid, steps, hard, every_state)
    logits_shape = jax.ShapeDtypeStruct(circuit.flat_logits().shape, np.float32)
    x_shape = jax.ShapeDtypeStruct((*function.grid, circuit.channels), np.float32)
    y_shape = jax.ShapeDtypeStruct(function.y_shape, np.float32)
    lock = Lock()  # JAX may call from several threads

    def forward(logits: Any, x: Any) -> Any:
        with lock:
            function.update(np.asarray(logits))
            return function.forward(np.asarray(x))

    def backward(logits: Any, x: Any, d_y: Any) -> Any:
        # Traced code has no state, so that nothing says whether the buffers still hold this pass: it is done again.
        with lock:
            function.update(np.asarray(logits))
            function.forward(np.asarray(x))
            return function.backward(np.asarray(d_y))

    def computed(logits: Any, x: Any) -> Any:
        return jax.pure_callback(forward, y_shape, logits, x, vmap_method="sequential")

    def pulled_back(kept: Any, d_y: Any) -> Any:
        return jax.pure_callback(backward, (logits_shape, x_shape), *kept, d_y, vmap_method="sequential")

    differentiable = jax.custom_vjp(computed)
    differentiable.defvjp(lambda logits, x: (computed(logits, x), (logits, x)), pulled_back)
    made: Callable[[Any, Any], Any] = differentiable
    return made
