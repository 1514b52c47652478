"""Layers of networks: dense layers, logic circuits and group sums."""

import copy
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, Self, TypeVar, cast

import numpy as np
import numpy.typing as npt

from difflogic.devices.device import Device, same_device
from difflogic.engine.function import CircuitFunction
from difflogic.engine.layered import LayeredFunction
from difflogic.errors import ShapeError, UsageError
from difflogic.model.circuit import Circuit
from difflogic.tensor.arrays import DeviceArray, Shape
from difflogic.tensor.tensor import Tensor

MOST_BATCH_SIZES = 8
"""Maximum number of batch sizes for which a `Logic` layer caches the buffers of its circuit."""

T = TypeVar("T")
Activation = Literal["tanh", "relu", "sigmoid", "linear"]
_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "tanh": Tensor.tanh,
    "relu": Tensor.relu,
    "sigmoid": Tensor.sigmoid,
    "linear": lambda x: x,
}


class Module:
    """Base class of layers. Attributes that are tensors, layers or lists of them are copied by `to`."""

    def to(self, device: Device | str) -> Self:
        """Return a copy of the layer on another device, with exactly equal parameters.

        An optimiser updates only the parameters that were passed to it, so create the optimiser after this copy.

        Raises:
            DeviceError: The device cannot be used.
        """
        layer = copy.copy(self)
        for name, value in vars(self).items():
            setattr(layer, name, _moved(value, device))
        return layer

    def parameters(self) -> list[Tensor]:
        """Return the trainable tensors of the layer, to be passed to an optimiser."""
        return []


def _moved(value: Any, device: Device | str) -> Any:
    if isinstance(value, Tensor):  # not `Tensor.to`, whose result is not a parameter
        return Tensor(value.numpy(), device, requires_grad=value.requires_grad, dtype=value.dtype)
    if isinstance(value, list):
        return [_moved(item, device) for item in value]
    return value.to(device) if isinstance(value, Module) else value


def to_device(values: T, device: Device | str) -> T:
    """Copy one or several tensors and layers to another device.

    >>> moved = to_device({"x": Tensor([1.0]), "layers": [nn.Dense(1, 2)]}, "reference")
    >>> str(moved["layers"][0].weights.device)
    'reference'

    Args:
        values: A tensor, a layer, or a nested list, tuple or dict of them.
        device: Value of `--engine`, or a Device.

    Returns:
        The same structure with copies of all tensors and layers.

    Raises:
        UsageError: `values` contain an object of another type.
        DeviceError: The device cannot be used.
    """
    if isinstance(values, (Tensor, Module)):
        return cast(T, values.to(device))
    if isinstance(values, Mapping):
        return cast(T, {name: to_device(value, device) for name, value in values.items()})
    if isinstance(values, (list, tuple)):
        return cast(T, (list if isinstance(values, list) else tuple)(to_device(value, device) for value in values))
    raise UsageError(f"to_device requires tensors or layers, or lists, tuples or dicts of them, got {values!r:.80}.")


class Dense(Module):
    """Dense layer from `[B, nin]` to `[B, nout]`: a linear map, biases and an activation.

    Initial weights are uniform in +-sqrt(6 / (nin + nout)) (Glorot & Bengio 2010); initial biases are 0.
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
    """Multilayer perceptron: dense layers, with an activation after each layer except the last.

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
        # All layers share one generator, which `default_rng` returns unchanged, so each layer samples other weights.
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
        return [parameter for layer in self.layers for parameter in layer.parameters()]


class Logic(Module):
    """Logic circuit as a layer with the parameter `logits [P, 16]`; the engine of its device computes it.

    A feed-forward circuit maps `[B, inputs]` to `[B, outputs]`. An automaton maps initial states `[B, H, W, C]` to the
    states after `steps` steps. On a GPU, unless `by_layer` is True, inputs usually stay on the device and are not
    checked: the caller must ensure that inputs of a hard layer are 0 or 1.

    Args:
        circuit: Wiring and initial logits.
        steps: Number of steps of an automaton; 1 for a feed-forward circuit.
        hard: True for hard gates in the forward pass and soft gates in the backward pass (straight-through).
        device: Value of `--engine`, or a Device.
        by_layer: True to compute the gradients of a hard feed-forward circuit layer by layer, each at the bits that the
            layer reads; False to compute them at the values of the soft circuit.

    Raises:
        DeviceError: The device cannot be used.
        UsageError: `by_layer` is True, but the circuit is soft or an automaton.
    """

    def __init__(
        self, circuit: Circuit, steps: int = 1, *, hard: bool = False, device: Device | str = "cpu",
        by_layer: bool = False,
    ) -> None:  # fmt: skip
        if by_layer and (not hard or circuit.perceive):
            raise UsageError("by_layer=True requires hard=True and a feed-forward circuit.")
        self.logits = Tensor(circuit.flat_logits(), device, requires_grad=True)
        self.hard, self.steps, self._by_layer = hard, steps, by_layer
        self._start = circuit
        self._engine = self.logits.device.open()
        self._functions: OrderedDict[Shape, CircuitFunction] = OrderedDict()

    @property
    def circuit(self) -> Circuit:
        """Circuit with the current logits."""
        return self._start.with_logits(self.logits.numpy())

    def __call__(self, x: Tensor) -> Tensor:
        same_device("Logic", logits=self.logits.device, x=x.device)
        before = "(B, H, W" if self._start.perceive else "(B"
        if x.ndim != 2 + 2 * bool(self._start.perceive) or x.shape[-1] != self._start.channels:
            raise ShapeError(f"This circuit requires x of shape {before}, {self._start.channels}), got {x.shape}.")
        arrays, grid, data, logits = x._arrays, x.shape[:-1], x.data, self.logits.data
        if 0 in grid:  # an empty batch, for which no engine has buffers
            empty, size = arrays.put(np.zeros((*grid, self._start.outputs), np.float32)), logits.shape
            # Each call makes a new gradient of the logits, since gradients may be changed in place.
            return x._result(empty, (self.logits, x), lambda _: (arrays.put(np.zeros(size, np.float32)), data))
        y = self._function(grid).forward_arrays(arrays, data, logits)

        def pull(d_y: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
            # Look up the function again: after batches of many other sizes, a new one must be opened. A new function,
            # or one that was called in between, repeats the forward pass.
            return self._function(grid).backward_arrays(arrays, data, logits, d_y)

        return x._result(y, (self.logits, x), pull)

    def rewire(self, circuit: Circuit) -> None:
        """Replace the wiring by that of `circuit`, a circuit with the same layers; the logits stay the same."""
        self._start = circuit
        self._functions.clear()

    def unrolled(self, x: Tensor, memory: int, goes_on: npt.NDArray[np.bool_]) -> Tensor:
        """Return the outputs of T steps of a circuit with memory bits, for backpropagation through time.

        Inputs are `x [T, B, inputs]`; in step t > 0 the last `memory` inputs become the last outputs of step t - 1, or
        0 if `goes_on[t - 1]`, bool `[T, B]`, is False. Only the logits get gradients, through all steps.
        """
        arrays, steps = x._arrays, x.shape[0]
        # Use a separate grid shape, so that no other call uses the same function.
        function = self._function((1, x.shape[1]))
        inputs, logits = x.numpy(), self.logits.numpy()
        first = x.shape[2] - memory
        continues = goes_on[:, :, None].astype(inputs.dtype)

        def forward() -> Iterator[npt.NDArray[Any]]:
            function.update(logits)
            for t in range(steps):
                y = function.forward(inputs[t][None])[0]
                if t + 1 < steps:
                    inputs[t + 1, :, first:] = y[:, y.shape[1] - memory :] * continues[t]
                yield y

        def pull(d_y: DeviceArray) -> tuple[DeviceArray]:
            function.update(logits)
            adjoint, total = arrays.get(d_y).copy(), np.zeros_like(logits)
            for t in reversed(range(steps)):
                function.forward(inputs[t][None])
                gradients, d_x = function.backward(adjoint[t][None])
                total += gradients
                if t:
                    adjoint[t - 1, :, adjoint.shape[2] - memory :] += d_x[0, :, first:] * continues[t - 1]
            return (arrays.put(total),)

        return self.logits._result(arrays.put(np.stack([*forward()])), (self.logits,), pull)

    def to(self, device: Device | str) -> Self:
        return type(self)(self.circuit, self.steps, hard=self.hard, device=device, by_layer=self._by_layer)

    def parameters(self) -> list[Tensor]:
        return [self.logits]

    def _function(self, grid: Shape) -> CircuitFunction:
        if grid not in self._functions:
            self._functions[grid] = (
                LayeredFunction(self._engine, self._start, grid)
                if self._by_layer
                else self._engine.open_function(self._start, grid, self.steps, hard=self.hard)
            )
        self._functions.move_to_end(grid)
        if len(self._functions) > MOST_BATCH_SIZES:
            # Do not close the function, since its work may not have been submitted to the device yet.
            self._functions.popitem(last=False)
        return self._functions[grid]


class GroupSum(Module):
    """Layer that sums groups of k columns, from `[B, groups * k]` to `[B, groups]`, and divides the sums by `tau`."""

    def __init__(self, groups: int, tau: float = 1.0) -> None:
        self.groups, self.tau = groups, tau
        self._members: Tensor | None = None

    def __call__(self, x: Tensor) -> Tensor:
        # A product with the membership matrix is much faster than a sum along such short axes.
        members, width = self._members, x.shape[-1]
        if members is None or (members.shape[0], members.device, members.dtype) != (width, x.device, x.dtype):
            if width % self.groups:
                raise ShapeError(f"GroupSum requires a multiple of {self.groups} columns, got {width}.")
            rows = np.repeat(np.eye(self.groups) / self.tau, width // self.groups, axis=0)
            self._members = members = Tensor(rows, x.device, dtype=x.dtype)
        return x @ members
