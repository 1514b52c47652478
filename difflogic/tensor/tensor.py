"""A tensor: an array on a device that knows how it was computed, so that gradients can be taken back through it."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic.devices.device import Device, same_device
from difflogic.engine.shape import Array
from difflogic.errors import ShapeError, UsageError
from difflogic.tensor.arrays import DeviceArray, Shape, arrays_of, d_operand, device_of, summed
from difflogic.tensor.checks import axes_of, check_dtype, new_shape, numbers, unpacked

Pull = Callable[[DeviceArray], tuple[DeviceArray | None, ...]]
"""From the adjoint of a result to the adjoints of what it was computed from; None where nobody asks for one."""

_MADE = itertools.count()


class Tensor:
    """Numbers on a device, float32 or, on the processor alone, float64.

    Every operation is carried out at once and remembered where a gradient may be asked for: `backward` goes the way
    back and leaves in `grad` of each tensor that was made with `requires_grad` what it contributed.

    Args:
        values: anything that NumPy makes an array of; it is copied.
        device: what `--engine` takes, or a Device.
        requires_grad: whether `backward` is to leave a gradient here.
        dtype: float32 or float64.

        >>> x = Tensor([1.0, 2.0, 3.0], requires_grad=True)
        >>> (x * x).sum().backward()
        >>> x.grad.numpy().tolist()
        [2.0, 4.0, 6.0]

    Raises:
        UsageError: for what holds no numbers, for another dtype, or float64 on a GPU.
        ShapeError: for more than eight axes.
        DeviceError: where the device cannot be used.
    """

    __slots__ = ("_arrays", "_inputs", "_made", "_pull", "data", "device", "grad", "requires_grad")
    __array_ufunc__ = None  # else NumPy would take `array + tensor` apart, entry by entry

    def __init__(
        self,
        values: npt.ArrayLike,
        device: Device | str = "cpu",
        *,
        requires_grad: bool = False,
        dtype: npt.DTypeLike = np.float32,
    ) -> None:
        self.device = device_of(device) if isinstance(device, str) else device
        self._arrays = arrays_of(self.device)
        check_dtype(np.dtype(dtype), self.device)
        self.data: DeviceArray = self._arrays.put(numbers("Tensor", values, dtype))
        self._remember(requires_grad, (), None)

    def _remember(self, requires_grad: bool, inputs: tuple[Tensor, ...], pull: Pull | None) -> None:
        self.requires_grad = requires_grad
        self.grad: Tensor | None = None
        self._inputs = inputs
        self._pull = pull
        self._made = next(_MADE)

    def _like(self, data: DeviceArray) -> Tensor:
        """A tensor beside this one, which comes from nowhere."""
        made = Tensor.__new__(Tensor)
        made.device, made._arrays, made.data = self.device, self._arrays, data
        made._remember(False, (), None)
        return made

    def _result(self, data: DeviceArray, inputs: tuple[Tensor, ...], pull: Pull) -> Tensor:
        made = self._like(data)
        for each in inputs:
            if each.requires_grad:
                made.requires_grad, made._inputs, made._pull = True, inputs, pull
                break
        return made

    @property
    def shape(self) -> Shape:
        return self.data.shape  # type: ignore[no-any-return]

    @property
    def ndim(self) -> int:
        return len(self.data.shape)

    @property
    def size(self) -> int:
        return self.data.size  # type: ignore[no-any-return]

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.data.dtype  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"Tensor(shape={self.shape}, dtype={self.dtype.name}, device={str(self.device)!r})"

    def numpy(self) -> Array:
        """A copy on the host; waits until it is computed."""
        return self._arrays.get(self.data)

    def item(self) -> float:
        """The one number that it holds. Raises ShapeError where it holds none, or several."""
        if self.size != 1:
            raise ShapeError(f"A tensor of the shape {self.shape} is not one number: read them by a.numpy().")
        return float(self.numpy().item())

    def __float__(self) -> float:
        return self.item()

    def __bool__(self) -> bool:
        return bool(self.item())

    # As NumPy has it, and read from the device: entry by entry, without a gradient.

    def __eq__(self, other: object) -> Array:  # type: ignore[override]
        return np.asarray(self.numpy() == (other.numpy() if isinstance(other, Tensor) else other))

    def __ne__(self, other: object) -> Array:  # type: ignore[override]
        return ~(self == other)

    __hash__ = object.__hash__

    def assign(self, values: Tensor | npt.ArrayLike) -> None:
        """Put other numbers of the same shape here: weights that were loaded, a target network that follows another.

        Not between a forward pass and its `backward`, which may need the old ones.
        """
        given = self._operand("assign", values) if isinstance(values, Tensor) else numbers("assign", values, self.dtype)
        if given.shape != self.shape:
            raise ShapeError(f"assign needs values of the shape {self.shape}, not {given.shape}.")
        self._arrays.assign(self.data, given.data if isinstance(given, Tensor) else given)

    def assign_rows(self, first: int, rows: npt.ArrayLike) -> None:
        """Put other numbers into some rows, from the row `first` on; as `assign`."""
        given = numbers("assign_rows", rows, self.dtype)
        if not (given.ndim == self.ndim > 0 and given.shape[1:] == self.shape[1:]):
            raise ShapeError(f"assign_rows needs rows as {self.shape} has them, not the shape {given.shape}.")
        if first < 0 or first + len(given) > self.shape[0]:
            raise ShapeError(f"Rows {first} to {first + len(given) - 1} do not fit into {self.shape}.")
        self._arrays.assign_rows(first, self.data, given)

    def to(self, device: Device | str) -> Tensor:
        """The same numbers on another device, to the bit; gradients find their way back."""
        there = device_of(device) if isinstance(device, str) else device
        if there == self.device:
            return self
        check_dtype(self.dtype, there)
        here, arrays = self._arrays, arrays_of(there)
        made = self._result(arrays.put(here.get(self.data)), (self,), lambda d_y: (here.put(arrays.get(d_y)),))
        made.device, made._arrays = there, arrays
        return made

    def stop_gradient(self) -> Tensor:
        """The same numbers, through which no gradient flows back."""
        return self._like(self.data)

    # Gradients

    def backward(self, adjoint: Tensor | npt.ArrayLike | None = None) -> None:
        """Add to `grad` of each tensor with `requires_grad` the gradient of this one.

        Args:
            adjoint: the gradient of what matters by this tensor, of its shape; without it this is what matters, and
                a single number.

        Raises:
            ShapeError: without an adjoint where this is more than one number, or for an adjoint of another shape.
            UsageError: where this was computed from no tensor with `requires_grad`.
        """
        if not self.requires_grad:
            raise UsageError(
                "backward has no gradients to compute: no tensor with requires_grad=True went into this one."
            )
        if adjoint is None and self.size != 1:
            raise ShapeError(
                f"backward begins at a single number, and this tensor has the shape {self.shape}: sum it up, or hand "
                "backward the adjoint, the gradient by each entry."
            )
        given = self._operand("backward", 1.0 if adjoint is None else adjoint)
        d_self = self._arrays.expand(self.shape, given.data) if adjoint is None else given.data
        if d_self.shape != self.shape:
            raise ShapeError(f"backward needs an adjoint of the shape {self.shape}, not {d_self.shape}.")
        self._pull_back(d_self)

    def _pull_back(self, d_self: DeviceArray) -> None:
        # Whatever is computed from a tensor is made after it, and has the larger number. So of the tensors that wait,
        # the newest has all of its adjoint, and each is gone through once. With y = x * x and z = y * x, at x = 3:
        #     z: adjoint 1    gives y the adjoint x = 3, and x the adjoint y = 9
        #     y: adjoint 3    gives x twice 3 * 3, so that x has 27, which is 3 x^2
        #     x: adjoint 27   is what it was asked for
        # A walk from input to input would go on from x with the 9 alone, and once more for every other way to it: of
        # thirty sums y + y in a row, a billion ways. The heap gives the smallest number first, hence the minus.
        found, adjoints, order = {self._made: self}, {self._made: d_self}, [-self._made]
        while order:
            made = -heapq.heappop(order)
            tensor, adjoint = found.pop(made), adjoints.pop(made)
            if tensor._pull is None:
                tensor._keep(adjoint)
                continue
            for given, d_given in zip(tensor._inputs, tensor._pull(adjoint), strict=True):
                if d_given is None or not given.requires_grad:
                    continue
                key = given._made
                if key in found:
                    adjoints[key] = given._arrays.binary("add", adjoints[key], d_given)
                else:
                    found[key], adjoints[key] = given, d_given
                    heapq.heappush(order, -key)

    def _keep(self, gradient: DeviceArray) -> None:
        if self.requires_grad:
            self.grad = self._like(
                gradient if self.grad is None else self._arrays.binary("add", self.grad.data, gradient)
            )

    # Two operands

    def _operand(self, op: str, given: Tensor | npt.ArrayLike) -> Tensor:
        """The other operand, on this device."""
        if isinstance(given, Tensor):
            if given._arrays is not self._arrays:
                same_device(op, a=self.device, b=given.device)
            return given
        if isinstance(given, (int, float)):
            return self._like(self._arrays.constant(given, self.dtype))
        return self._like(self._arrays.put(numbers(op, given, self.dtype)))

    def _binary(self, op: str, other: Tensor | npt.ArrayLike) -> Tensor:
        b = self._operand(op, other)
        arrays, x, y = self._arrays, self.data, b.data
        try:
            result = arrays.binary(op, x, y)
        except ValueError:
            raise ShapeError(
                f"{op} needs shapes that broadcast, and {self.shape} and {b.shape} do not: counted from the last axis, "
                "sizes must be equal or 1."
            ) from None
        need_a, need_b = self.requires_grad, b.requires_grad

        def pull(d_y: DeviceArray) -> tuple[DeviceArray | None, ...]:
            d_a = summed(arrays, x.shape, d_operand(arrays, op, "a", d_y, x, y)) if need_a else None
            return d_a, summed(arrays, y.shape, d_operand(arrays, op, "b", d_y, x, y)) if need_b else None

        return self._result(result, (self, b), pull)

    def __add__(self, other: Tensor | npt.ArrayLike) -> Tensor:
        return self._binary("add", other)

    __radd__ = __add__

    def __sub__(self, other: Tensor | npt.ArrayLike) -> Tensor:
        return self._binary("subtract", other)

    def __rsub__(self, other: Tensor | npt.ArrayLike) -> Tensor:
        return self._operand("subtract", other)._binary("subtract", self)

    def __mul__(self, other: Tensor | npt.ArrayLike) -> Tensor:
        return self._binary("multiply", other)

    __rmul__ = __mul__

    def __truediv__(self, other: Tensor | npt.ArrayLike) -> Tensor:
        return self._binary("divide", other)

    def __rtruediv__(self, other: Tensor | npt.ArrayLike) -> Tensor:
        return self._operand("divide", other)._binary("divide", self)

    def __pow__(self, other: Tensor | npt.ArrayLike) -> Tensor:
        return self._binary("power", other)

    def __rpow__(self, other: Tensor | npt.ArrayLike) -> Tensor:
        return self._operand("power", other)._binary("power", self)

    def __matmul__(self, other: Tensor | npt.ArrayLike) -> Tensor:
        b = self._operand("matmul", other)
        if self.ndim != 2 or b.ndim != 2 or self.shape[1] != b.shape[0]:
            raise ShapeError(
                f"matmul needs matrices of the shapes (n, k) and (k, m), not {self.shape} and {b.shape}: reshape or "
                "transpose one."
            )
        arrays, x, y = self._arrays, self.data, b.data
        need_a, need_b = self.requires_grad, b.requires_grad

        def pull(d_y: DeviceArray) -> tuple[DeviceArray | None, ...]:
            d_a = arrays.matmul(d_y, y, False, True) if need_a else None
            return d_a, arrays.matmul(x, d_y, True, False) if need_b else None

        return self._result(arrays.matmul(x, y), (self, b), pull)

    def __rmatmul__(self, other: npt.ArrayLike) -> Tensor:
        return self._operand("matmul", other) @ self

    # Entry by entry

    def __neg__(self) -> Tensor:
        arrays = self._arrays
        return self._result(arrays.unary("negate", self.data), (self,), lambda d_y: (arrays.unary("negate", d_y),))

    def _unary(self, op: str) -> Tensor:
        arrays, x = self._arrays, self.data
        y = arrays.unary(op, x)
        saved = x if op == "log" else y
        return self._result(y, (self,), lambda d_y: (arrays.d_unary(op, d_y, saved),))

    def exp(self) -> Tensor:
        return self._unary("exp")

    def log(self) -> Tensor:
        """The natural logarithm."""
        return self._unary("log")

    def sqrt(self) -> Tensor:
        return self._unary("sqrt")

    def tanh(self) -> Tensor:
        return self._unary("tanh")

    def sigmoid(self) -> Tensor:
        """`1 / (1 + exp(-x))`."""
        return self._unary("sigmoid")

    def relu(self) -> Tensor:
        """The larger of x and 0. So `a - (a - b).relu()` is the smaller of a and b."""
        return self._unary("relu")

    # Along axes

    def sum(self, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
        """The sum over one axis, over several, or over all; `keepdims` leaves them there with size 1."""
        axes, shape, arrays = axes_of("sum", axis, self.ndim), self.shape, self._arrays
        kept = tuple(1 if k in axes else size for k, size in enumerate(shape))
        y = arrays.reduce("sum", axes, self.data)
        y = arrays.reshape(kept, y) if keepdims else y
        return self._result(y, (self,), lambda d_y: (arrays.expand(shape, arrays.reshape(kept, d_y)),))

    def mean(self, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
        """The mean over the same; of no values it is NaN."""
        total = self.sum(axis, keepdims)
        return total / (self.size / total.size if total.size else 1.0)

    def softmax(self, axis: int = -1) -> Tensor:
        """`exp(x) / sum exp(x)` along an axis; large numbers do not overflow."""
        (axis,), arrays = axes_of("softmax", axis, self.ndim), self._arrays
        y = arrays.softmax(axis, self.data)
        return self._result(y, (self,), lambda d_y: (arrays.d_softmax(axis, d_y, y),))

    def reshape(self, *shape: int | Sequence[int]) -> Tensor:
        """The same numbers in another shape; one size may be -1, and follows from the others."""
        arrays, before = self._arrays, self.shape
        y = arrays.reshape(new_shape(before, shape), self.data)
        return self._result(y, (self,), lambda d_y: (arrays.reshape(before, d_y),))

    def transpose(self, *axes: int | Sequence[int]) -> Tensor:
        """Axis k of the result is axis `axes[k]` of this; without any, the order is reversed."""
        order = axes_of("transpose", unpacked(axes) if axes else range(self.ndim)[::-1], self.ndim)
        if len(order) != self.ndim:
            raise ShapeError(f"transpose needs each of the {self.ndim} axes of {self.shape} once, not {axes}.")
        back, arrays = tuple(order.index(k) for k in range(self.ndim)), self._arrays
        y = arrays.transpose(order, self.data)
        return self._result(y, (self,), lambda d_y: (arrays.transpose(back, d_y),))

    @property
    def T(self) -> Tensor:  # noqa: N802
        return self.transpose()


def gathered(tensors: Sequence[Tensor], places: npt.ArrayLike) -> list[Tensor]:
    """The same rows of several tensors of one device, by their numbers; no gradient goes back through them.

    Raises ShapeError for a number that one of them does not have, DeviceMismatchError for tensors of two devices.
    """
    if not tensors or not all(each.ndim for each in tensors):
        raise ShapeError("gathered takes rows: it needs at least one tensor, and each of at least one axis.")
    same_device("gathered", **{f"tensors[{k}]": each.device for k, each in enumerate(tensors)})
    wanted, rows = np.asarray(places), min(each.shape[0] for each in tensors)
    if wanted.ndim != 1 or (wanted.size and wanted.dtype.kind not in "iu"):
        raise ShapeError("gathered needs the numbers of rows in a list of whole numbers.")
    if wanted.size and not 0 <= wanted.min() <= wanted.max() < rows:
        raise ShapeError(f"Rows are numbered from 0 to {rows - 1}, not {wanted.min()} to {wanted.max()}.")
    arrays = tensors[0]._arrays
    chosen = arrays.put(wanted.astype(np.uint32))
    return [each._like(arrays.gather(chosen, each.data)) for each in tensors]
