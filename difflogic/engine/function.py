"""Circuits as differentiable functions, for use in custom losses, networks and training loops."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from difflogic.config.task import MIN_SIDE, is_large_enough
from difflogic.engine import memory
from difflogic.engine.batch import as_finite
from difflogic.engine.shape import Array, Shape
from difflogic.errors import DataError, UsageError
from difflogic.model.circuit import Circuit


class FunctionOpener(Protocol):
    """Protocol of the part of `difflogic.engine.api.Engine` that creates circuit functions."""

    def open_function(
        self, circuit: Circuit, grid: Sequence[int], steps: int = 1, hard: bool = False, every_state: bool = False
    ) -> CircuitFunction:
        """Return a circuit as a differentiable function, as `Engine.open_function` does."""


class Place(Protocol):
    """Protocol of the part of `difflogic.devices.device.Device` that opens a device's engine."""

    def open(self) -> FunctionOpener:
        """Open the engine of the device."""


class ArrayStore(Protocol):
    """Protocol of the part of `difflogic.tensor.arrays.Arrays` that moves arrays to and from a device.

    On the host, both methods return their argument.
    """

    def put(self, values: Array) -> Any: ...
    def get(self, x: Any) -> Array: ...


class CircuitFunction(ABC):
    """Differentiable function `y = f(x)` that runs a circuit for `steps` steps; created by `Engine.open_function`.

    `x` is float32 `[*grid, C]`. `y` is `[*grid, outputs]`, or, with `every_state`, the states after each step, `[T,
    *grid, C]`. The grid of an automaton is `(B, H, W)`. A feed-forward circuit runs one step on a grid of any shape, in
    which each cell is a sample. Buffers are allocated once and reused by every call.

    A hard function uses hard gates in the forward pass, which maps bits to bits, and soft gates on the same `x` in the
    backward pass (straight-through estimator).

        >>> import numpy as np
        >>> from difflogic import Circuit, open_engine
        >>> circuit = Circuit.feed_forward([4, 8, 2], seed=0)
        >>> function = open_engine("reference").open_function(circuit, [3])
        >>> y = function.forward(np.ones((3, 4)))
        >>> gradients, d_x = function.backward(y - 1)
        >>> function.update(circuit.flat_logits() - 0.1 * gradients)
        >>> d_x.shape
        (3, 4)
    """

    selector: str
    """Selector of the device, in the form that `Device` accepts."""
    _dtype: np.dtype[Any] = np.dtype(np.float32)

    def __init__(self, circuit: Circuit, grid: Sequence[int], steps: int, hard: bool, every_state: bool) -> None:
        self.grid, self.steps, self.hard, self.every_state = tuple(map(int, grid)), steps, hard, every_state
        self._circuit = circuit
        self._shape = _shape(circuit, self.grid, steps, every_state)
        memory.check_states(self._shape, circuit.outputs)
        self._logits = circuit.flat_logits().astype(self._dtype)
        self._passes, self._seen = 0, False
        self._last: tuple[Any, ...] = ()

    @property
    def current(self) -> int | None:
        """Number of the forward pass whose values `backward` would use; None if a new forward pass is needed first."""
        return self._passes if self._seen else None

    @property
    def circuit(self) -> Circuit:
        """Circuit with the current logits."""
        return self._circuit.with_logits(self._logits.copy())

    @property
    def y_shape(self) -> tuple[int, ...]:
        """Shape of the result of `forward`, which is also that of the argument of `backward`."""
        return (*((self.steps,) if self.every_state else ()), *self.grid, self._circuit.outputs)

    def forward(self, x: npt.ArrayLike) -> Array:
        """Compute `y = f(x)`.

        Args:
            x: Inputs, `[*grid, C]`; 0 or 1 if the function is hard.

        Returns:
            The outputs `y`, float32 in the shape `y_shape`.

        Raises:
            DataError: `x` has another shape, is not finite, or contains values other than 0 and 1 in a hard function.
        """
        values = self._checked("x", x, (*self.grid, self._circuit.channels))
        if self.hard and not ((values == 0) | (values == 1)).all():
            raise DataError("A hard function expects x of 0 and 1, got other values: round x, or use a soft function.")
        self._seen = False  # until the buffers are complete
        y = self._forward(values.reshape(-1, self._circuit.channels))
        self._passes, self._seen = self._passes + 1, True
        return y.reshape(self.y_shape)

    def backward(self, d_y: npt.ArrayLike) -> tuple[Array, Array]:
        """Compute the gradients of a loss with respect to the logits and to the last `x`.

        Args:
            d_y: Gradient of the loss with respect to `y`, in the shape `y_shape`.

        Returns:
            Gradients of the logits, `[P, 16]`, summed over samples in a fixed order, and gradients of `x`.

        Raises:
            UsageError: `forward` has not run since the last change of the logits.
            DataError: `d_y` has another shape, or is not finite.
        """
        if not self._seen:
            raise UsageError("backward needs a forward pass: call forward first.")
        values = self._checked("d_y", d_y, self.y_shape)
        with np.errstate(over="ignore", invalid="ignore"):
            gradients, d_x = self._backward(values.reshape(-1, self._shape.cells, self._circuit.outputs))
        return gradients, d_x.reshape(*self.grid, self._circuit.channels)

    def update(self, logits: npt.ArrayLike) -> None:
        """Replace the logits, `[P, 16]`; do nothing if they equal the current logits.

        Raises:
            DataError: `logits` have another shape, or are not finite.
        """
        new = self._checked("logits", logits, self._logits.shape)
        if np.array_equal(new, self._logits):
            return
        self._logits, self._seen = new.copy(), False
        self._update()

    def forward_arrays(self, arrays: ArrayStore, x: Any, logits: Any) -> Any:
        """Set `logits` and return `y` for `x`, as device arrays; avoid copies if they are on the function's device."""
        # `backward_arrays` compares arrays by identity, since comparing values would need a transfer. The references
        # stored here keep both arrays alive, so that no new array gets the same identity.
        self._last = x, logits
        self.update(arrays.get(logits))
        return arrays.put(self.forward(arrays.get(x)))

    def backward_arrays(self, arrays: ArrayStore, x: Any, logits: Any, d_y: Any) -> tuple[Any, Any]:
        """Return the gradients of `logits` and `x`; repeat the forward pass if the last one used other arrays."""
        if [*map(id, self._last)] != [id(x), id(logits)]:
            self.forward_arrays(arrays, x, logits)
        gradients, d_x = self.backward(arrays.get(d_y))
        return arrays.put(gradients), arrays.put(d_x)

    def to(self, place: Place) -> CircuitFunction:
        """Return a copy with the same logits on the device `place`; return `self` if it is already on this device.

        Raises:
            UsageError: `place` is a string instead of a Device.
        """
        if isinstance(place, str):
            raise UsageError(f"Expected a Device, got the string {place!r}: pass Device({place!r}).")
        if str(place) == self.selector:
            return self
        return place.open().open_function(self.circuit, self.grid, self.steps, self.hard, self.every_state)

    def close(self) -> None:
        """Free the resources; the function cannot be used afterwards."""
        self._seen = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _checked(self, name: str, values: npt.ArrayLike, expected: tuple[int, ...]) -> Array:
        array = as_finite(name, values, self._dtype)
        if array.shape != expected:
            raise DataError(f"{name} must have shape {list(expected)}, got {list(array.shape)}.")
        return array

    @abstractmethod
    def _forward(self, x: Array) -> Array:
        """Return `y [S, cells, outputs]` for `x [cells, C]`; S is T if `every_state` is True, otherwise 1."""

    @abstractmethod
    def _backward(self, d_y: Array) -> tuple[Array, Array]:
        """Return the gradients of the logits, `[P, 16]`, and of `x`, `[cells, C]`, for `d_y [S, cells, outputs]`."""

    @abstractmethod
    def _update(self) -> None:
        """Copy `self._logits` to the engine's buffers."""


def _shape(circuit: Circuit, grid: tuple[int, ...], steps: int, every_state: bool) -> Shape:
    if steps < 1:
        raise DataError(f"steps must be at least 1, got {steps}.")
    if min(grid, default=0) < 1:
        raise DataError(f"The grid of a function needs at least one cell, got {list(grid)}.")
    if not circuit.perceive:
        if steps > 1:
            circuit.require_automaton()
        # Samples form one row, so that SIMD vectors and tiles are full.
        return Shape(1, 1, math.prod(grid), circuit.channels, steps, circuit.outputs)
    if len(grid) != 3 or not is_large_enough(grid[1], grid[2], circuit.neighbourhood):
        raise DataError(
            f"An automaton needs a grid [B, H, W] of at least {MIN_SIDE}x{MIN_SIDE} cells, got {list(grid)}."
        )
    loss_steps = tuple(range(1, steps + 1)) if every_state else ()
    return Shape.of(circuit, (*grid, circuit.channels), steps, circuit.channels, loss_steps)
