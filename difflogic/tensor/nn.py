"""Layers: parameters, and what is computed with them."""

import copy
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from difflogic.devices.device import Device, same_device
from difflogic.engine.function import CircuitFunction
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


class Module:
    """A base of layers: of its attributes, tensors and other layers are moved with it, in lists too."""

    def to(self, device: Device | str) -> Self:
        """The same layer on another device: a copy whose parameters are equal to the bit, and are its own.

        An optimiser knows the parameters that it was made with: make it after the layer is moved.
        """
        made = copy.copy(self)
        for name, value in vars(self).items():
            setattr(made, name, _moved(value, device))
        return made

    def parameters(self) -> list[Tensor]:
        """What an optimiser changes."""
        return []


def _moved(value: Any, device: Device | str) -> Any:
    if isinstance(value, Tensor):  # made anew: what `Tensor.to` gives is a result, and no parameter
        return Tensor(value.numpy(), device, requires_grad=value.requires_grad, dtype=value.dtype)
    if isinstance(value, list):
        return [_moved(each, device) for each in value]
    return value.to(device) if isinstance(value, Module) else value


class Dense(Module):
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


class MLP(Module):
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
        # One generator for all layers, which `default_rng` hands on as it is: each layer draws what comes next.
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


class Logic(Module):
    """A logic circuit as a layer, whose parameter is `logits [G, 16]`, computed by the engine of its device, fused.

    A feed-forward circuit takes `[B, inputs]` to `[B, outputs]`, an automaton grids `[B, H, W, C]` to what they are
    after `steps` steps. On a GPU nothing crosses through the host, and nothing is checked there: where it is hard, `x`
    has to be 0 or 1.

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
        self._functions: OrderedDict[Shape, CircuitFunction] = OrderedDict()

    @property
    def circuit(self) -> Circuit:
        """The circuit with its present logits."""
        return self._start.with_logits(self.logits.numpy())

    def __call__(self, x: Tensor) -> Tensor:
        same_device("Logic", logits=self.logits.device, x=x.device)
        before = "(B, H, W" if self._start.perceive else "(B"
        if x.ndim != 2 + 2 * bool(self._start.perceive) or x.shape[-1] != self._start.channels:
            raise ShapeError(f"This circuit needs x of the shape {before}, {self._start.channels}), not {x.shape}.")
        arrays, grid, given, logits = x._arrays, x.shape[:-1], x.data, self.logits.data
        if 0 in grid:  # for which no engine has buffers
            none = arrays.put(np.zeros((*grid, self._start.outputs), np.float32))
            flat = np.zeros(self.logits.shape, np.float32)
            return x._result(none, (self.logits, x), lambda _: (arrays.put(flat), given))
        y = self._function(grid).forward_arrays(arrays, given, logits)

        def pull(d_y: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
            # Looked up again, not kept: after batches of many other sizes it may be a new one. Such a one repeats the
            # forward pass, and so does one that has been called since.
            return self._function(grid).backward_arrays(arrays, given, logits, d_y)

        return x._result(y, (self.logits, x), pull)

    def unrolled(self, x: Tensor, memory: int, goes_on: npt.NDArray[np.bool_]) -> Tensor:
        """T steps of a circuit whose last `memory` inputs are what its last outputs were: `[T, B, inputs]` to outputs.

        The first step begins with the memory in `x`, another with zeros where `goes_on[t - 1]`, bool `[T, B]`, is
        False. Gradients of the logits go back through all steps, by pass after pass on the host; none reach `x`.
        """
        arrays, steps = x._arrays, x.shape[0]
        # A grid of its own, so that no other call takes its pass for the last.
        function = self._function((1, x.shape[1]))
        given, logits = x.numpy().copy(), self.logits.numpy()
        first = x.shape[2] - memory
        kept = goes_on[:, :, None].astype(given.dtype)

        def forward() -> Iterator[npt.NDArray[Any]]:
            function.update(logits)
            for t in range(steps):
                y = function.forward(given[t][None])[0]
                if t + 1 < steps:
                    given[t + 1, :, first:] = y[:, y.shape[1] - memory :] * kept[t]
                yield y

        def pull(d_y: DeviceArray) -> tuple[DeviceArray]:
            function.update(logits)
            adjoint, total = arrays.get(d_y).copy(), np.zeros_like(logits)
            for t in reversed(range(steps)):
                function.forward(given[t][None])
                gradients, d_x = function.backward(adjoint[t][None])
                total += gradients
                if t:
                    adjoint[t - 1, :, adjoint.shape[2] - memory :] += d_x[0, :, first:] * kept[t - 1]
            return (arrays.put(total),)

        return self.logits._result(arrays.put(np.stack([*forward()])), (self.logits,), pull)

    def to(self, device: Device | str) -> Self:
        return type(self)(self.circuit, self.steps, hard=self.hard, device=device)

    def parameters(self) -> list[Tensor]:
        return [self.logits]

    def _function(self, grid: Shape) -> CircuitFunction:
        if grid not in self._functions:
            self._functions[grid] = self._engine.open_function(self._start, grid, self.steps, hard=self.hard)
        self._functions.move_to_end(grid)
        if len(self._functions) > MOST_BATCH_SIZES:
            # Not closed: what it was asked for may not be submitted yet.
            self._functions.popitem(last=False)
        return self._functions[grid]


class GroupSum(Module):
    """Sums of equal groups, `[B, groups * k]` to `[B, groups]`, divided by `tau`: how bits vote for an action."""

    def __init__(self, groups: int, tau: float = 1.0) -> None:
        self.groups, self.tau = groups, tau
        self._members: Tensor | None = None

    def __call__(self, x: Tensor) -> Tensor:
        # A product with a matrix that says who is in which group: along such short axes it is far quicker than a sum.
        known, width = self._members, x.shape[-1]
        if known is None or (known.shape[0], known.device, known.dtype) != (width, x.device, x.dtype):
            if width % self.groups:
                raise ShapeError(f"GroupSum needs a multiple of {self.groups} columns, not {width}.")
            rows = np.repeat(np.eye(self.groups) / self.tau, width // self.groups, axis=0)
            self._members = known = Tensor(rows, x.device, dtype=x.dtype)
        return x @ known
