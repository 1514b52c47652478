"""Layers: parameters, and what is computed with them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from difflogic.devices.device import Device, same_device
from difflogic.engine.function import CircuitFunction
from difflogic.engine.shape import Array
from difflogic.errors import ShapeError
from difflogic.model.circuit import Circuit
from difflogic.tensor.arrays import DeviceArray, Shape
from difflogic.tensor.tensor import Tensor

MOST_BATCH_SIZES = 8
"""For which a circuit's buffers are kept."""

Activation = Literal["tanh", "relu", "sigmoid", "linear"]
_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "tanh": Tensor.tanh,
    "relu": Tensor.relu,
    "sigmoid": Tensor.sigmoid,
    "linear": lambda x: x,
}


class Dense:
    """A linear layer, `[B, nin]` to `[B, nout]`, and what its sums pass through.

    Weights begin uniformly within `sqrt(6 / (nin + nout))` (Glorot & Bengio 2010), drawn from `seed`, biases at 0.
    """

    def __init__(
        self,
        nin: int,
        nout: int,
        activation: Activation = "linear",
        *,
        seed: int | np.random.Generator = 0,
        device: Device | str = "cpu",
        dtype: npt.DTypeLike = np.float32,
    ) -> None:
        bound = np.sqrt(6 / (nin + nout))
        weights = np.random.default_rng(seed).uniform(-bound, bound, (nin, nout))
        self.weights = Tensor(weights, device, requires_grad=True, dtype=dtype)
        self.biases = Tensor(np.zeros(nout), device, requires_grad=True, dtype=dtype)
        self.activation = activation

    def __call__(self, x: Tensor) -> Tensor:
        return _ACTIVATIONS[self.activation](x @ self.weights + self.biases)

    def parameters(self) -> list[Tensor]:
        return [self.weights, self.biases]


class MLP:
    """Dense layers one behind the other, with an activation after each but the last.

    >>> MLP(4, [64, 64, 1])(Tensor([[0.1, 0.2, 0.3, 0.4]])).shape
    (1, 1)
    """

    def __init__(
        self,
        nin: int,
        nouts: Sequence[int],
        activation: Activation = "tanh",
        *,
        seed: int | np.random.Generator = 0,
        device: Device | str = "cpu",
        dtype: npt.DTypeLike = np.float32,
    ) -> None:
        rng = np.random.default_rng(seed)
        sizes, last = [nin, *nouts], len(nouts) - 1
        self.layers = [
            Dense(sizes[k], sizes[k + 1], "linear" if k == last else activation, seed=rng, device=device, dtype=dtype)
            for k in range(len(nouts))
        ]

    def __call__(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x

    def parameters(self) -> list[Tensor]:
        return [each for layer in self.layers for each in layer.parameters()]


class Logic:
    """A logic circuit as a layer, whose parameter is `logits [G, 16]`, computed by the engine of its device, fused.

    A feed-forward circuit takes `[B, inputs]` to `[B, outputs]`, an automaton grids `[B, H, W, C]` to what they are
    after `steps` steps. The numbers cross through the host.

    Args:
        circuit: where it begins.
        steps: of an automaton; a feed-forward circuit takes one.
        hard: whether to compute by the hard gates, 0 or 1 from 0 or 1, and take gradients of the soft ones: the
            straight-through estimator.
        device: what `--engine` takes, or a Device.
    """

    def __init__(self, circuit: Circuit, steps: int = 1, *, hard: bool = False, device: Device | str = "cpu") -> None:
        self.logits = Tensor(circuit.flat_logits(), device, requires_grad=True)
        self.hard, self.steps = hard, steps
        self._start = circuit
        self._engine = self.logits.device.open()
        self._passes: OrderedDict[Shape, _Pass] = OrderedDict()

    @property
    def circuit(self) -> Circuit:
        """The circuit with its present logits."""
        return self._start.with_logits(self.logits.numpy())

    def __call__(self, x: Tensor) -> Tensor:
        same_device("Logic", logits=self.logits.device, x=x.device)
        before = "(B, H, W" if self._start.perceive else "(B"
        if x.ndim != 2 + 2 * bool(self._start.perceive) or x.shape[-1] != self._start.channels:
            raise ShapeError(f"This circuit needs x of the shape {before}, {self._start.channels}), not {x.shape}.")
        arrays, grid, values, logits = x._arrays, x.shape[:-1], x.numpy(), self.logits.numpy()
        y = self._pass(grid).forward(values, logits)

        def pull(d_y: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
            gradients, d_x = self._pass(grid).backward(values, logits, arrays.get(d_y))
            return arrays.put(gradients), arrays.put(d_x)

        return x._result(arrays.put(y), (self.logits, x), pull)

    def parameters(self) -> list[Tensor]:
        return [self.logits]

    def _pass(self, grid: Shape) -> _Pass:
        if grid not in self._passes:
            self._passes[grid] = _Pass(self._engine.open_function(self._start, grid, self.steps, hard=self.hard))
        self._passes.move_to_end(grid)
        if len(self._passes) > MOST_BATCH_SIZES:
            self._passes.popitem(last=False)[1].function.close()
        return self._passes[grid]


class _Pass:
    """A function of one batch size, and what it was last called with: the way back is over its last way forward."""

    def __init__(self, function: CircuitFunction) -> None:
        self.function = function
        self._values: Array | None = None
        self._logits: Array | None = None

    def forward(self, values: Array, logits: Array) -> Array:
        if self._logits is None or not np.array_equal(self._logits, logits):
            self.function.update(logits)
        self._values, self._logits = values, logits
        return self.function.forward(values)

    def backward(self, values: Array, logits: Array, d_y: Array) -> tuple[Array, Array]:
        # Another batch may have gone through in between: a network is called twice in one loss.
        if self._values is not values or self._logits is not logits:
            self.forward(values, logits)
        return self.function.backward(d_y)


class GroupSum:
    """Sums of equal groups, `[B, groups * k]` to `[B, groups]`, divided by `tau`: how bits vote for an action."""

    def __init__(self, groups: int, tau: float = 1.0) -> None:
        self.groups, self.tau = groups, tau

    def __call__(self, x: Tensor) -> Tensor:
        return x.reshape(x.shape[0], self.groups, -1).sum(2) / self.tau

    def parameters(self) -> list[Tensor]:
        return []
