"""Circuits as differentiable functions in JAX. Requires the extra `jax`.

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
    """Return a circuit as a JAX function `y = f(logits, x)` for use with `jax.grad`, `jax.jit` and `jax.vmap`.

    Args:
        circuit: Circuit with the wiring; its logits are unused, since logits are an argument of the function.
        grid: `[B, H, W]` for an automaton; any shape of samples for a feed-forward circuit.
        steps: Number of CA steps, T; 1 for a feed-forward circuit.
        hard: True for hard gates in the forward pass and soft gates in the backward pass (straight-through).
        every_state: True to return the state after each step instead of only the last state.
        device: Device on which difflogic computes, independent of the device of JAX's arrays.

    Returns:
        The function. `logits` is float32 `[P, 16]`, `x` is `[*grid, C]`, and `y` is `[*grid, outputs]`, or `[T, *grid,
        C]` if `every_state`. It raises DataError for other shapes, and UsageError for forward and second derivatives.

    Raises:
        DataError: The circuit does not support `grid` or `steps`.
        DeviceError: The device is unusable.
        LimitError: The states do not fit into memory.
    """
    function = Device(str(device)).open().open_function(circuit, grid, steps, hard, every_state)
    logits_shape = jax.ShapeDtypeStruct(circuit.flat_logits().shape, np.float32)
    x_shape = jax.ShapeDtypeStruct((*function.grid, circuit.channels), np.float32)
    y_shape = jax.ShapeDtypeStruct(function.y_shape, np.float32)
    lock = Lock()  # JAX may call the function from several threads

    def forward(logits: Any, x: Any) -> Any:
        with lock:
            function.update(np.asarray(logits))
            return function.forward(np.asarray(x))

    def backward(logits: Any, x: Any, d_y: Any) -> Any:
        # Traced code has no state, so the buffers may belong to another call, and the forward pass is repeated.
        with lock:
            function.update(np.asarray(logits))
            function.forward(np.asarray(x))
            return function.backward(np.asarray(d_y))

    def computed(logits: Any, x: Any) -> Any:
        return jax.pure_callback(forward, y_shape, logits, x, vmap_method="sequential")

    def pulled_back(logits: Any, x: Any, d_y: Any) -> Any:
        return jax.pure_callback(backward, (logits_shape, x_shape), logits, x, d_y, vmap_method="sequential")

    # Second derivatives, which would differentiate these functions, are unsupported.
    first, back = jax.custom_jvp(computed), jax.custom_jvp(pulled_back)
    first.defjvp(_refused)
    back.defjvp(_refused)
    differentiable = jax.custom_jvp(computed)

    def pushed(primals: Any, tangents: Any) -> Any:
        return first(*primals), _TANGENT.bind(*primals, *tangents, shape=y_shape.shape, back=back)

    differentiable.defjvp(pushed)

    def layer(logits: Any, x: Any) -> Any:
        for name, array, shape in (("logits", logits, logits_shape.shape), ("x", x, x_shape.shape)):
            if np.shape(array) != shape:
                raise DataError(f"{name} must have shape {list(shape)}, got {list(np.shape(array))}.")
        return differentiable(logits, x)

    return layer


def _refused(*_: Any, **__: Any) -> Any:
    raise UsageError(
        "Circuits have only first-order reverse-mode derivatives: use jax.grad, jax.vjp or jax.jacrev, not jax.jvp, "
        "jax.jacfwd or jax.hessian."
    ) from None


# The derivative of the output with respect to logits and inputs. JAX's backward pass only transposes it; evaluating it
# would be a forward derivative, which raises UsageError. With `jax.custom_vjp`, JAX would raise its own error from
# compiled code, which could not be caught.
_TANGENT = Primitive("circuit_tangent")
_TANGENT.def_impl(_refused)
_TANGENT.def_abstract_eval(lambda *_, shape, back: jax.core.ShapedArray(shape, np.float32))
mlir.register_lowering(_TANGENT, _refused)
ad.primitive_jvps[_TANGENT] = _refused


def _transposed(d_y: Any, logits: Any, x: Any, *changes: Any, shape: tuple[int, ...], back: Any) -> list[Any]:
    adjoints = back(logits, x, ad.instantiate_zeros(d_y))
    needed = (d if ad.is_undefined_primal(change) else None for d, change in zip(adjoints, changes, strict=True))
    return [None, None, *needed]


def _batched(arrays: Sequence[Any], axes: Sequence[Any], *, shape: tuple[int, ...], back: Any) -> tuple[Any, int]:
    size = next(array.shape[axis] for array, axis in zip(arrays, axes, strict=True) if axis is not None)
    batched = [batching.bdim_at_front(array, axis, size) for array, axis in zip(arrays, axes, strict=True)]
    return _TANGENT.bind(*batched, shape=(size, *shape), back=jax.vmap(back)), 0


ad.primitive_transposes[_TANGENT] = _transposed
batching.primitive_batchers[_TANGENT] = _batched
