"""Replacement of candidate wires: improbable candidates give way to inputs that would decrease the loss most.

With learned wiring, each input of a gate is chosen among few candidates. Replacing these during training searches all
inputs at the cost of a few. Source: RigL, which regrows weights by gradient, Evci et al. 2020 (arXiv 1911.11134).
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
BATCH = 256
"""Maximum number of samples evaluated at a time."""


def rewired(
    circuit: Circuit,
    engine: FunctionOpener,
    x: Array,
    gradient: Callable[[Array, slice], Array],
    generator: np.random.Generator,
) -> Circuit:
    """Replace improbable candidates by inputs with a gain above 0.

    The gain of an input is the decrease of the loss, to first order, if the wire read it instead of its most probable
    candidate. The most probable candidate stays, so the hard circuit does not change.

    Args:
        circuit: Feed-forward circuit with k candidates for each wire.
        engine: Engine that evaluates the circuit.
        x: Bits of N samples, float32 `[N, inputs]`. They are split into equal batches; a remainder is left out.
        gradient: Function that returns the gradient of the loss with respect to hard outputs `[n, outputs]` of a batch,
            and that receives the batch as a slice of the samples.
        generator: Generator that samples inputs.

    Returns:
        The circuit with new candidates.
    """
    parts, batches = layers(circuit), -(-len(x) // BATCH)
    size = len(x) // batches
    functions = [engine.open_function(layer, [size], hard=True) for layer in parts]
    # Bits as bytes, since all samples of wide layers are kept.
    read: list[list[Array]] = [[] for _ in parts]
    adjoints: list[list[Array]] = [[] for _ in parts]
    for first in range(0, batches * size, size):
        y = x[first : first + size]
        for function, bits in zip(functions, read, strict=True):
            bits.append(y.T.astype(np.uint8))
            y = function.forward(y)
        d_y = gradient(y, slice(first, first + size))
        for function, batch in zip(reversed(functions[1:]), reversed(adjoints[1:]), strict=True):
            batch.append(d_y.T)
            d_y = function.backward(d_y)[1]
        adjoints[0].append(d_y.T)
    for function in functions:
        function.close()
    changed = []
    for layer, bits, batch in zip(reversed(parts), reversed(read), reversed(adjoints), strict=True):
        changed.append(_rewired_layer(layer, np.concatenate(bits, axis=1), np.concatenate(batch, axis=1), generator))
    wires, logits = zip(*reversed(changed), strict=True)
    return replace(circuit, update_wires=wires, wire_logits=np.concatenate(logits))


def _rewired_layer(layer: Circuit, bits: Array, d_y: Array, generator: np.random.Generator) -> tuple[Array, Array]:
    """Return new wires and wire logits of a layer that reads `bits [inputs, N]`; `d_y [out, N]` are its gradients."""
    wires, logits = layer.update_wires[0].copy(), layer.logits[WIRES][0].copy()
    best, soft = layer.chosen.update_wires[0], softmax(1, layer.update[0]) @ gates.TABLE.astype(d_y.dtype)
    for first in range(0, len(d_y), BLOCK):
        block = slice(first, first + BLOCK)
        pool = generator.permutation(len(bits))[:POOL]
        a_b, sampled = (bits[places].astype(d_y.dtype) for places in (best[:, block], pool))
        # d_a = d * (ca + cab * b) and d_b = d * (cb + cab * a)
        _, *linear, product = soft[block].T[..., None]
        d_a_b = d_y[block] * (linear + product * a_b[::-1])
        gains = (d_a_b * a_b).sum(axis=2, keepdims=True) - d_a_b @ sampled.T
        _replace(wires[:, block], logits[block].swapaxes(0, 1), pool, gains)
    return wires, logits


def _replace(wires: Array, logits: Array, pool: Array, gains: Array) -> None:
    """Replace candidates `wires [2, n, k]` and their `logits` in place by inputs `pool [m]` with `gains [2, n, m]`.

    Inputs with the largest gains above 0 replace the least probable candidates that are more than GAP below the best.
    """
    gains[(wires[..., None] == pool).any(axis=2)] = -np.inf
    count = min(logits.shape[-1], len(pool))
    least = logits.argsort(axis=-1, kind="stable")[..., :count]
    best = np.argpartition(-gains, count - 1, axis=-1)[..., :count]
    best = np.take_along_axis(best, np.take_along_axis(gains, best, -1).argsort(axis=-1)[..., ::-1], -1)
    start = logits.max(axis=-1, keepdims=True) - np.asarray(GAP, logits.dtype)
    is_new = (np.take_along_axis(logits, least, -1) < start) & (np.take_along_axis(gains, best, -1) > 0)
    for values, new in ((wires, pool[best]), (logits, start)):
        np.put_along_axis(values, least, np.where(is_new, new, np.take_along_axis(values, least, -1)), -1)
