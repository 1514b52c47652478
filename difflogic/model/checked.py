"""Check the arrays of a circuit, which may come from untrusted files or callers."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic.core import gates, wiring
from difflogic.errors import CircuitError

Array = npt.NDArray[Any]
WIRES = "wires"
"""Key of the logits of candidate wires, in dictionaries that map each network to its logits."""


def network(
    name: str,
    logits: Sequence[npt.ArrayLike],
    wires: Sequence[npt.ArrayLike],
    n_in: int,
    n_out: int | None,
    tail: tuple[int, ...] = (),
) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """Validate a network, and return the arrays of its logits and of its wires `[..., out, *tail]`, one per layer.

    The network has `n_in` inputs and `n_out` outputs (None for any number); `tail` is `(k,)` with k candidates for each
    wire, otherwise `()`. Raise CircuitError if a shape, type or value is invalid.
    """
    if not logits or len(logits) != len(wires):
        raise CircuitError(
            f"{name} needs one or more layers with logits and wires, got {len(logits)} logits and {len(wires)} wires."
        )
    # Each layer reads the outputs of the previous layer, so the logits determine the number of its inputs.
    layers, connections = [], []
    kernels = None
    for index, (layer, pair) in enumerate(zip(logits, wires, strict=True)):
        where = f"{name} layer {index}"
        layer_logits = _layer_logits(where, name, layer, kernels)
        kernels = layer_logits.shape[0] if name == "perceive" else None
        connections.append(_layer_wires(where, pair, n_in, layer_logits, tail))
        layers.append(layer_logits)
        n_in = layer_logits.shape[-2]
    if n_out is not None and n_in != n_out:
        raise CircuitError(f"The last {name} layer must have {n_out} gates, one per channel, got {n_in}.")
    return tuple(layers), tuple(connections)


def wire_logits(logits: Mapping[str, Sequence[npt.ArrayLike]]) -> Array | None:
    """Return the candidate wires' logits in `logits`, `[G, 2, k]`, or None if absent. Raise CircuitError if invalid."""
    if WIRES not in logits:
        return None
    [array] = (_array("The logits of wires", values) for values in logits[WIRES])
    gate_count = sum(np.size(layer) for name in logits if name != WIRES for layer in logits[name]) // gates.GATE_COUNT
    is_sized = array.ndim == 3 and array.shape[:2] == (gate_count, 2) and array.shape[2] in wiring.CANDIDATES[1:]
    if not is_sized or array.dtype not in (np.float32, np.float64) or not np.isfinite(array).all():
        raise CircuitError(
            f"The logits of wires must be finite floats [{gate_count}, 2, k], where k is one of "
            f"{', '.join(map(str, wiring.CANDIDATES[1:]))}, got {array.dtype} {list(array.shape)}."
        )
    return array


def _array(name: str, values: npt.ArrayLike) -> Array:
    try:
        return np.array(values)
    except ValueError as error:  # rows of different lengths
        raise CircuitError(f"{name} must be one array: {error}") from error


def _layer_logits(where: str, name: str, values: npt.ArrayLike, kernels: int | None) -> Array:
    array = _array(f"The logits of {where}", values)
    if array.dtype not in (np.float32, np.float64):
        raise CircuitError(f"The logits of {where} must be float32 or float64, got {array.dtype}.")
    expected, rank = ("[K, out, 16]", 3) if name == "perceive" else ("[out, 16]", 2)
    if array.ndim != rank or array.shape[-1] != gates.GATE_COUNT or 0 in array.shape:
        raise CircuitError(f"The logits of {where} must have shape {expected}, got {list(array.shape)}.")
    if kernels is not None and array.shape[0] != kernels:
        raise CircuitError(f"Expected {kernels} kernels (K) in all perception layers, got {array.shape[0]} in {where}.")
    # One NaN would spread to every cell in a few steps, which would hide its origin.
    if not np.isfinite(array).all():
        raise CircuitError(f"The logits of {where} must be finite, got NaN or infinity.")
    return array


def _layer_wires(where: str, values: npt.ArrayLike, n_in: int, logits: Array, tail: tuple[int, ...]) -> Array:
    array = _array(f"The wires of {where}", values)
    if not np.issubdtype(array.dtype, np.integer):
        raise CircuitError(f"The wires of {where} must be integers, got {array.dtype}.")
    shape = (2, logits.shape[-2], *tail)
    per_kernel = (logits.shape[0], *shape) if logits.ndim == 3 else shape
    # Wiring that kernels share is repeated for each: engines need no second case, and wires take little memory.
    if array.shape == shape and logits.ndim == 3:
        array = np.repeat(array[None], logits.shape[0], axis=0)
    if array.shape != per_kernel:
        alternatives = f"{list(shape)} or {list(per_kernel)}" if logits.ndim == 3 else f"{list(shape)}"
        raise CircuitError(f"The wires of {where} must have shape {alternatives}, got {list(array.shape)}.")
    if array.min() < 0 or array.max() >= n_in:
        raise CircuitError(
            f"The wires of {where} must be between 0 and {n_in - 1}, got {array.min()} to {array.max()}."
        )
    return array.astype(np.int64)
