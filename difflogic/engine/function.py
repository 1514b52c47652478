"""A circuit as a differentiable function, for losses, networks and training loops of one's own."""

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
    """What opens functions is an engine: see `difflogic.engine.api.Engine`."""

    def open_function(
        self, circuit: Circuit, grid: Sequence[int], steps: int = 1, hard: bool = False, every_state: bool = False
    ) -> CircuitFunction:
        """A circuit as a function of start grids of one shape."""


class Place(Protocol):
    """A place is where engines are: see `difflogic.devices.device.Device`."""

    def open(self) -> FunctionOpener:
        """The engine that computes there."""


class ArrayStore(Protocol):
    """A store is where arrays are kept: see `difflogic.tensor.arrays.Arrays`."""

    def put(self, values: Array) -> Any: ...
    def get(self, x: Any) -> Array: ...


class CircuitFunction(ABC):
    """`y = f(x)` by `steps` steps of a circuit, and its adjoint, on one engine; `Engine.open_function` makes it.

    `x` is float32 `[*grid, C]` and `y` `[*grid, outputs]`; with `every_state` it is `[T, *grid, C]`, the states after
    each step. The grid of an automaton is `(B, H, W)`. A feed-forward circuit takes one step, and a grid of any shape:
    each cell is a sample. Buffers are made once, and used again by every call.

    A hard function computes by the hard gates, exactly 0 or 1 from 0 or 1, and backward as the soft circuit would
    from the same `x`: the straight-through estimator.

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
    """What `Device` takes to name where this is."""
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
        """The number of the forward pass that `backward` goes back over; None where there is none."""
        return self._passes if self._seen else None

    @property
    def circuit(self) -> Circuit:
        """The circuit with its present logits."""
        return self._circuit.with_logits(self._logits.copy())

    @property
    def y_shape(self) -> tuple[int, ...]:
        """The shape of what `forward` gives and `backward` takes."""
        return (*((self.steps,) if self.every_state else ()), *self.grid, self._circuit.outputs)

    def forward(self, x: npt.ArrayLike) -> Array:
        """`y`. Raises DataError for another shape, what is not finite, and for other values than bits where hard."""
        values = self._checked("x", x, (*self.grid, self._circuit.channels))
        if self.hard and not ((values == 0) | (values == 1)).all():
            raise DataError("A hard function works on bits: every value of x must be 0 or 1; round it, or use soft.")
        self._seen = False  # not before the buffers hold it whole
        y = self._forward(values.reshape(-1, self._circuit.channels))
        self._passes, self._seen = self._passes + 1, True
        return y.reshape(self.y_shape)

    def backward(self, d_y: npt.ArrayLike) -> tuple[Array, Array]:
        """Gradients of the logits, `[G, 16]`, and of `x`, for the adjoint `d_y` of the last `y`.

        Gradients are sums over all samples, in an order that never changes. Raises UsageError where no `forward` came
        before it since the last `update`, DataError for another shape or what is not finite.
        """
        if not self._seen:
            raise UsageError("backward needs a forward pass: call forward first.")
        values = self._checked("d_y", d_y, self.y_shape)
        with np.errstate(over="ignore", invalid="ignore"):
            gradients, d_x = self._backward(values.reshape(-1, self._shape.cells, self._circuit.outputs))
        return gradients, d_x.reshape(*self.grid, self._circuit.channels)

    def update(self, logits: npt.ArrayLike) -> None:
        """Take these logits, `[G, 16]`, in place of those before; the same once more cost nothing. Raises DataError."""
        new = self._checked("logits", logits, self._logits.shape)
        if np.array_equal(new, self._logits):
            return
        self._logits, self._seen = new.copy(), False
        self._update()

    def forward_arrays(self, arrays: ArrayStore, x: Any, logits: Any) -> Any:
        """`y` by these logits, all of them arrays of one device; where it is the function's own, nothing crosses."""
        # Arrays are compared by identity alone, which asks nothing of the device. They are held here, so that no other
        # array can get the identity of one that is gone.
        self._last = x, logits
        self.update(arrays.get(logits))
        return arrays.put(self.forward(arrays.get(x)))

    def backward_arrays(self, arrays: ArrayStore, x: Any, logits: Any, d_y: Any) -> tuple[Any, Any]:
        """Return what `backward` gives for this `x` and `logits`, whose pass is repeated if another came between."""
        if [*map(id, self._last)] != [id(x), id(logits)]:
            self.forward_arrays(arrays, x, logits)
        gradients, d_x = self.backward(arrays.get(d_y))
        return arrays.put(gradients), arrays.put(d_x)

    def to(self, place: Place) -> CircuitFunction:
        """Return the same function on that `Device`, itself where it is there already, with exactly its logits."""
        if isinstance(place, str):
            raise UsageError(f"A function moves to a device, but got the text {place!r}: give Device({place!r}).")
        if str(place) == self.selector:
            return self
        return place.open().open_function(self.circuit, self.grid, self.steps, self.hard, self.every_state)

    def close(self) -> None:
        """Free what the engine holds; the function cannot be used afterwards."""
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
        """`[S, cells, outputs]` from `[cells, C]`; S is T where every state is asked for, else 1."""

    @abstractmethod
    def _backward(self, d_y: Array) -> tuple[Array, Array]:
        """`[G, 16]` and `[cells, C]` from `[S, cells, outputs]`."""

    @abstractmethod
    def _update(self) -> None:
        """Bring `self._logits` where the engine computes."""


def _shape(circuit: Circuit, grid: tuple[int, ...], steps: int, every_state: bool) -> Shape:
    if steps < 1:
        raise DataError(f"steps must be at least 1, got {steps}.")
    if min(grid, default=0) < 1:
        raise DataError(f"The grid of a function needs at least one cell, got {list(grid)}.")
    if not circuit.perceive:
        if steps > 1:
            circuit.require_automaton()
        # Samples lie in one row, so that vectors and tiles are full.
        return Shape(1, 1, math.prod(grid), circuit.channels, steps, circuit.outputs)
    if len(grid) != 3 or not is_large_enough(grid[1], grid[2], circuit.neighbourhood):
        raise DataError(
            f"An automaton needs a grid [B, H, W] of at least {MIN_SIDE}x{MIN_SIDE} cells, got {list(grid)}."
        )
    judged = tuple(range(1, steps + 1)) if every_state else ()
    return Shape.of(circuit, (*grid, circuit.channels), steps, circuit.channels, judged)
