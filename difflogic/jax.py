"""Circuits as functions that JAX differentiates and compiles around. Needs the extra `jax`.

layer = difflogic.jax.circuit_function(difflogic.Circuit.feed_forward([64, 256, 100], seed=0), (32,))
gradients = jax.grad(lambda logits: layer(logits, bits).sum())(circuit.flat_logits())
"""

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any

import numpy as np

from difflogic.devices.device import Device
from difflogic.errors import DataError, MissingPackagesError, UsageError
from difflogic.model.circuit import Circuit

try:
    import jax
    from jax.extend.core import Primitive
    from jax.interpreters import ad, batching, mlir
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

    Its gradients with respect to both are known to `jax.grad`, and it may stand within `jax.jit` and `jax.vmap`;
    difflogic computes on `device`, whatever device JAX's arrays are on. Raises as `Engine.open_function` does; the
    function raises DataError for other shapes, and UsageError for derivatives other than the first, backward.
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

    def pulled_back(logits: Any, x: Any, d_y: Any) -> Any:
        return jax.pure_callback(backward, (logits_shape, x_shape), logits, x, d_y, vmap_method="sequential")

    # Second derivatives differentiate what the first ones are made of.
    first, back = jax.custom_jvp(computed), jax.custom_jvp(pulled_back)
    first.defjvp(_refused)
    back.defjvp(_refused)
    differentiable = jax.custom_jvp(computed)

    def pushed(given: Any, tangents: Any) -> Any:
        return first(*given), _TANGENT.bind(*given, *tangents, shape=y_shape.shape, back=back)

    differentiable.defjvp(pushed)

    def layer(logits: Any, x: Any) -> Any:
        for name, given, right in (("logits", logits, logits_shape.shape), ("x", x, x_shape.shape)):
            if np.shape(given) != right:
                raise DataError(f"{name} must have shape {list(right)}, got {list(np.shape(given))}.")
        return differentiable(logits, x)

    return layer


def _refused(*_: Any, **__: Any) -> Any:
    raise UsageError(
        "The derivatives of a circuit are the first ones, backward: use jax.grad, jax.vjp or jax.jacrev, and neither "
        "jax.jvp, jax.jacfwd nor jax.hessian."
    ) from None


# How an output changes with logits and inputs. JAX's backward pass only transposes it. Whoever computes it asks for a
# forward derivative: of `jax.custom_vjp` JAX would say so in its own words, out of compiled code, where nobody could
# catch them.
_TANGENT = Primitive("circuit_tangent")
_TANGENT.def_impl(_refused)
_TANGENT.def_abstract_eval(lambda *_, shape, back: jax.core.ShapedArray(shape, np.float32))
mlir.register_lowering(_TANGENT, _refused)
ad.primitive_jvps[_TANGENT] = _refused


def _transposed(d_y: Any, logits: Any, x: Any, *changes: Any, shape: tuple[int, ...], back: Any) -> list[Any]:
    found = back(logits, x, ad.instantiate_zeros(d_y))
    asked = (d if ad.is_undefined_primal(change) else None for d, change in zip(found, changes, strict=True))
    return [None, None, *asked]


def _batched(arrays: Sequence[Any], axes: Sequence[Any], *, shape: tuple[int, ...], back: Any) -> tuple[Any, int]:
    size = next(each.shape[axis] for each, axis in zip(arrays, axes, strict=True) if axis is not None)
    every = [batching.bdim_at_front(each, axis, size) for each, axis in zip(arrays, axes, strict=True)]
    return _TANGENT.bind(*every, shape=(size, *shape), back=jax.vmap(back)), 0


ad.primitive_transposes[_TANGENT] = _transposed
batching.primitive_batchers[_TANGENT] = _batched
