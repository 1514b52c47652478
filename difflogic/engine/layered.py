"""Hard feed-forward circuits as one function per layer, so that a layer's gradients are taken at the bits it reads.

A hard function computes bits in the forward pass, but gradients at the values of the soft circuit, which differ more
from the bits with every layer. With a function per layer, each layer begins with exact bits again.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from difflogic.core import wiring
from difflogic.engine.function import CircuitFunction, FunctionOpener
from difflogic.engine.shape import Array
from difflogic.model.checked import WIRES
from difflogic.model.circuit import Circuit


class LayeredFunction(CircuitFunction):
    """Hard function of a feed-forward circuit, see `difflogic.engine.function.CircuitFunction`."""

    def __init__(self, engine: FunctionOpener, circuit: Circuit, grid: Sequence[int]) -> None:
        super().__init__(circuit, grid, steps=1, hard=True, every_state=False)
        self._layers = [engine.open_function(layer, grid, hard=True) for layer in layers(circuit)]
        self.selector = self._layers[0].selector

    def _forward(self, x: Array) -> Array:
        for layer in self._layers:
            x = layer.forward(x.reshape(*self.grid, -1))
        return x

    def _backward(self, d_y: Array) -> tuple[Array, Array]:
        gates, wires = [], []
        for layer in reversed(self._layers):
            gradients, d_y = layer.backward(d_y.reshape(layer.y_shape))
            parts = layer.circuit.unflatten(gradients)
            gates += parts["update"]
            wires += parts.get(WIRES, [])
        rows = [wiring.rows(np.concatenate(wires[::-1]))] if wires else []
        return np.concatenate([*gates[::-1], *rows]), d_y

    def close(self) -> None:
        super().close()
        for layer in self._layers:
            layer.close()

    def _update(self) -> None:
        for function, layer in zip(self._layers, layers(self.circuit), strict=True):
            function.update(layer.flat_logits())


def layers(circuit: Circuit) -> list[Circuit]:
    """Return each layer of a feed-forward circuit as a circuit."""
    widths = [len(logits) for logits in circuit.update]
    wire_logits: list[Array | None] = [None] * len(widths)
    if circuit.wire_logits is not None:
        wire_logits = [*np.split(circuit.wire_logits, np.cumsum(widths)[:-1])]
    parts = zip(circuit.update, circuit.update_wires, [circuit.channels, *widths], wire_logits, strict=False)
    return [
        replace(circuit, update=(logits,), update_wires=(wires,), channels=inputs, wire_logits=candidates)
        for logits, wires, inputs, candidates in parts
    ]
