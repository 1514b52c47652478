"""Replacement of candidate wires: improbable candidates give way to inputs that would decrease the loss most.

With learned wiring, an input of a gate is chosen among few candidates. Replacing them during training searches all
inputs at the cost of a few candidates. Source: weights regrown by gradient, Evci et al. 2020 (arXiv 1911.11134).
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from difflogic.core import gates
from difflogic.core.wiring import BLOCK
from difflogic.engine.function import FunctionOpener
from difflogic.engine.layered import layers
from difflogic.engine.shape import Array
from difflogic.model.checked import WIRES
from difflogic.model.circuit import Circuit
from difflogic.tensor.kernels.softmax import softmax

POOL = 512
"""Number of inputs sampled for each block of gates, from which its new candidates are selected."""
GAP = 4.0
"""Difference of the logits of a wire's best candidate and a new one; candidates further behind are replaced."""


def rewired(
    circuit: Circuit,
    engine: FunctionOpener,
    x: Array,
    gradient: Callable[[Array], Array],
    generator: np.random.Generator,
) -> Circuit:
    """Replace improbable candidates by inputs with a gain above 0.

    The gain of an input is the decrease of the loss, to first order, if the wire read it instead of its most probable
    candidate. The most probable candidate stays, so the hard circuit does not change.

    Args:
        circuit: Feed-forward circuit with k candidates for each wire.
        engine: Engine that evaluates the circuit.
        x: Bits of N samples, float32 `[N, inputs]`.
        gradient: Function that returns the gradient of the loss with respect to hard outputs `[N, outputs]`.
        generator: Generator that samples inputs.

    Returns:
        The circuit with new candidates.
    """
    parts, read, changed = layers(circuit), [x], []
    functions = [engine.open_function(layer, [len(x)], hard=True) for layer in parts]
    for function in functions:
        read.append(function.forward(read[-1]))
    d_y = gradient(read.pop())
    for layer, function, inputs in zip(reversed(parts), reversed(functions), reversed(read), strict=True):
        changed.append(_rewired_layer(layer, np.ascontiguousarray(inputs.T), d_y.T, generator))
        _, d_y = function.backward(d_y)
        function.close()
    wires, logits = zip(*reversed(changed), strict=True)
    return replace(circuit, update_wires=wires, wire_logits=np.concatenate(logits))


def _rewired_layer(layer: Circuit, inputs: Array, d_y: Array, generator: np.random.Generator) -> tuple[Array, Array]:
    """Return new wires and wire logits of a layer, for `inputs [inputs, N]` and output gradients `d_y [out, N]`."""
    wires, logits = layer.update_wires[0].copy(), layer.logits[WIRES][0].copy()
    chosen, soft = layer.chosen.update_wires[0], softmax(1, layer.update[0]) @ gates.TABLE.astype(d_y.dtype)
    for first in range(0, len(d_y), BLOCK):
        block = slice(first, first + BLOCK)
        a_b, pool = inputs[chosen[:, block]], generator.permutation(len(inputs))[:POOL]
        # d_a = d * (ca + cab * b) and d_b = d * (cb + cab * a)
        _, *linear, product = soft[block].T[..., None]
        d_a_b = d_y[block] * (linear + product * a_b[::-1])
        gains = (d_a_b * a_b).sum(axis=2, keepdims=True) - d_a_b @ inputs[pool].T
        _replace(wires[:, block], logits[block].swapaxes(0, 1), pool, gains)
    return wires, logits


def _replace(wires: Array, logits: Array, pool: Array, gains: Array) -> None:
    """Replace candidates `wires [2, n, k]` by those of `pool [m]` with the largest `gains [2, n, m]`, in place."""
    gains[(wires[..., None] == pool).any(axis=2)] = -np.inf
    count = min(logits.shape[-1], len(pool))
    least = logits.argsort(axis=-1, kind="stable")[..., :count]
    best = np.argpartition(-gains, count - 1, axis=-1)[..., :count]
    best = np.take_along_axis(best, np.take_along_axis(gains, best, -1).argsort(axis=-1)[..., ::-1], -1)
    start = logits.max(axis=-1, keepdims=True) - np.asarray(GAP, logits.dtype)
    is_new = (np.take_along_axis(logits, least, -1) < start) & (np.take_along_axis(gains, best, -1) > 0)
    for values, new in ((wires, pool[best]), (logits, start)):
        np.put_along_axis(values, least, np.where(is_new, new, np.take_along_axis(values, least, -1)), -1)
