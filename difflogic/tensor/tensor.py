"""Tensors: arrays on a device that record operations for reverse-mode automatic differentiation."""

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
"""Function that maps the adjoint of a result to the adjoints of its inputs; None for inputs without gradient."""

_MADE = itertools.count()


class Tensor:
    """Array of numbers on a device: float32, or float64 (only on the CPU).

    Operations are executed immediately, and recorded if an input requires a gradient. `backward` then adds gradients to
    `grad` of each tensor that was created with `requires_grad`.

    Args:
        values: Numbers that NumPy can convert to an array; they are copied.
        device: Value of `--engine`, or a Device.
        requires_grad: True if `backward` should compute a gradient for this tensor.
        dtype: float32 or float64.

        >>> x = Tensor([1.0, 2.0, 3.0], requires_grad=True)
        >>> (x * x).sum().backward()
        >>> x.grad.numpy().tolist()
        [2.0, 4.0, 6.0]

    Raises:
        UsageError: `values` are not numbers, or the device does not support the dtype.
        ShapeError: There are more than eight axes.
        DeviceError: The device cannot be used.
    """

    __slots__ = ("_arrays", "_inputs", "_made", "_pull", "data", "device", "grad", "requires_grad")
    __array_ufunc__ = None  # else NumPy would compute `array + tensor` for each entry separately

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
        self.data: DeviceArray = self._arrays.put(np.array(numbers("Tensor", values, dtype)))
        self._begin(requires_grad)

    def _begin(self, requires_grad: bool) -> None:
        self.requires_grad, self._made = requires_grad, next(_MADE)
        self.grad: Tensor | None = None
        self._inputs: tuple[Tensor, ...] = ()
        self._pull: Pull | None = None

    def _like(self, data: DeviceArray) -> Tensor:
        """Make a tensor of `data` on the same device, without recorded inputs."""
        tensor = Tensor.__new__(Tensor)
        tensor.device, tensor._arrays, tensor.data = self.device, self._arrays, data
        tensor._begin(False)
        return tensor

    def _result(self, data: DeviceArray, inputs: tuple[Tensor, ...], pull: Pull) -> Tensor:
        result = self._like(data)
        if any(tensor.requires_grad for tensor in inputs):
            result.requires_grad, result._inputs, result._pull = True, inputs, pull
        return result

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
        """Wait until the tensor has been computed, and return a copy as a NumPy array."""
        values = self._arrays.get(self.data)
        return np.array(values) if values is self.data else values  # on a CPU, they are the tensor's own array

    def item(self) -> float:
        """Return the only number of a tensor as a float. Raise ShapeError if there are several numbers or none."""
        if self.size != 1:
            raise ShapeError(f"Expected a tensor of one number, got the shape {self.shape}: read it with numpy().")
        return float(self.numpy().item())

    def __float__(self) -> float:
        return self.item()

    def __bool__(self) -> bool:
        return bool(self.item())

    # Comparisons are element by element as in NumPy, on the host and without gradients.

    def __eq__(self, other: object) -> Array:  # type: ignore[override]
        return np.asarray(self.numpy() == (other.numpy() if isinstance(other, Tensor) else other))

    def __ne__(self, other: object) -> Array:  # type: ignore[override]
        return ~(self == other)

    __hash__ = object.__hash__

    def assign(self, values: Tensor | npt.ArrayLike) -> None:
        """Replace the tensor's numbers in place by `values` of the same shape, such as loaded weights.

        Do not call `assign` between a forward pass and its `backward`, which may need the previous numbers.

        Raises:
            ShapeError: `values` have another shape.
            DeviceMismatchError: `values` are a tensor on another device.
        """
        new = self._operand("assign", values) if isinstance(values, Tensor) else numbers("assign", values, self.dtype)
        if new.shape != self.shape:
            raise ShapeError(f"assign requires values of the shape {self.shape}, got {new.shape}.")
        self._arrays.assign(self.data, new.data if isinstance(new, Tensor) else new)

    def assign_rows(self, first: int, rows: npt.ArrayLike) -> None:
        """Replace rows from index `first` on by `rows` in place. Raise ShapeError if shape or range is invalid."""
        new = numbers("assign_rows", rows, self.dtype)
        if not (new.ndim == self.ndim > 0 and new.shape[1:] == self.shape[1:]):
            raise ShapeError(
                f"assign_rows requires an array of rows of shape {self.shape[1:]}, got the shape {new.shape}."
            )
        if first < 0 or first + len(new) > self.shape[0]:
            raise ShapeError(f"Rows {first} to {first + len(new) - 1} are out of range for the shape {self.shape}.")
        self._arrays.assign_rows(first, self.data, new)

    def to(self, device: Device | str) -> Tensor:
        """Return an exact, differentiable copy on another device, or `self`. Raises UsageError or DeviceError."""
        target = device_of(device) if isinstance(device, str) else device
        if target == self.device:
            return self
        check_dtype(self.dtype, target)
        source, arrays = self._arrays, arrays_of(target)
        moved = self._result(arrays.put(self.numpy()), (self,), lambda d_y: (source.put(arrays.get(d_y)),))
        moved.device, moved._arrays = target, arrays
        return moved

    def stop_gradient(self) -> Tensor:
        """Return a tensor with the same numbers through which no gradient flows back."""
        return self._like(self.data)

    # Gradients

    def backward(self, adjoint: Tensor | npt.ArrayLike | None = None) -> None:
        """Compute gradients, and add them to `grad` of each tensor created with `requires_grad`.

        Args:
            adjoint: Gradient of the loss with respect to this tensor; None if this tensor is the loss, a single number.

        Raises:
            ShapeError: `adjoint` has another shape than this tensor, or is None for a tensor of several numbers.
            UsageError: This tensor does not depend on a tensor with `requires_grad`.
        """
        if not self.requires_grad:
            raise UsageError(
                "backward requires a tensor that depends on one with requires_grad=True; this one does not."
            )
        if adjoint is None and self.size != 1:
            raise ShapeError(
                f"backward requires a tensor of one number, got the shape {self.shape}: sum the tensor, or pass the "
                "gradient with respect to each entry as `adjoint`."
            )
        seed = self._operand("backward", 1.0 if adjoint is None else adjoint)
        d_self = self._arrays.expand(self.shape, seed.data) if adjoint is None else seed.data
        if d_self.shape != self.shape:
            raise ShapeError(f"backward requires an adjoint of the shape {self.shape}, got {d_self.shape}.")
        self._pull_back(d_self)

    def _pull_back(self, d_self: DeviceArray) -> None:
        # A result has a larger number (`_made`) than its inputs. So the waiting tensor with the largest number has its
        # complete adjoint, and each tensor is processed once, in reverse topological order. With y = x * x and z = y *
        # x, at x = 3:
        #     z: adjoint 1    adds x = 3 to the adjoint of y, and y = 9 to the adjoint of x
        #     y: adjoint 3    adds 3 * 3 twice to the adjoint of x, which is then 27 = 3 x^2
        #     x: adjoint 27   is the gradient
        # A depth-first walk would process x with only the 9, and again for every other path: after thirty consecutive
        # sums y + y there are a billion paths. The heap returns the smallest number first, so it stores `-_made`.
        waiting, adjoints, order = {self._made: self}, {self._made: d_self}, [-self._made]
        while order:
            number = -heapq.heappop(order)
            tensor, adjoint = waiting.pop(number), adjoints.pop(number)
            if tensor._pull is None:
                before = tensor.grad
                total = adjoint if before is None else tensor._arrays.binary("add", before.data, adjoint)
                tensor.grad = tensor._like(total)
                continue
            for source, d_source in zip(tensor._inputs, tensor._pull(adjoint), strict=True):
                if d_source is None or not source.requires_grad:
                    continue
                key = source._made
                if key in waiting:
                    adjoints[key] = source._arrays.binary("add", adjoints[key], d_source)
                else:
                    waiting[key], adjoints[key] = source, d_source
                    heapq.heappush(order, -key)

    # Two operands

    def _operand(self, op: str, value: Tensor | npt.ArrayLike) -> Tensor:
        """Return the second operand as a tensor. Raise DeviceMismatchError if it is a tensor on another device."""
        if isinstance(value, Tensor):
            if value._arrays is not self._arrays:
                same_device(op, a=self.device, b=value.device)
            return value
        if isinstance(value, (int, float)):
            return self._like(self._arrays.constant(value, self.dtype))
        return self._like(self._arrays.put(np.array(numbers(op, value, self.dtype))))

    def _binary(self, op: str, other: Tensor | npt.ArrayLike) -> Tensor:
        b = self._operand(op, other)
        arrays, x, y = self._arrays, self.data, b.data
        try:
            result = arrays.binary(op, x, y)
        except ValueError:
            raise ShapeError(
                f"{op} requires shapes that broadcast, got {self.shape} and {b.shape}: counted from the last axis, "
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
                f"matmul requires shapes (n, k) and (k, m), got {self.shape} and {b.shape}: reshape or transpose one."
            )
        arrays, x, y = self._arrays, self.data, b.data
        need_a, need_b = self.requires_grad, b.requires_grad

        def pull(d_y: DeviceArray) -> tuple[DeviceArray | None, ...]:
            d_a = arrays.matmul(d_y, y, False, True) if need_a else None
            return d_a, arrays.matmul(x, d_y, True, False) if need_b else None

        return self._result(arrays.matmul(x, y), (self, b), pull)

    def __rmatmul__(self, other: npt.ArrayLike) -> Tensor:
        return self._operand("matmul", other) @ self

    # Element-wise operations

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
        """Return the natural logarithm of every entry."""
        return self._unary("log")

    def sqrt(self) -> Tensor:
        return self._unary("sqrt")

    def tanh(self) -> Tensor:
        return self._unary("tanh")

    def sigmoid(self) -> Tensor:
        """Return `1 / (1 + exp(-x))` for every entry x."""
        return self._unary("sigmoid")

    def relu(self) -> Tensor:
        """Return `max(x, 0)` for every entry x. (The minimum of a and b is `a - (a - b).relu()`.)"""
        return self._unary("relu")

    # Along axes

    def sum(self, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
        """Return the sum over one, several or (None) all axes; `keepdims` keeps summed axes with size 1."""
        axes, shape, arrays = axes_of("sum", axis, self.ndim), self.shape, self._arrays
        aligned = tuple(1 if k in axes else size for k, size in enumerate(shape))
        y = arrays.reduce("sum", axes, self.data)
        y = arrays.reshape(aligned, y) if keepdims else y
        return self._result(y, (self,), lambda d_y: (arrays.expand(shape, arrays.reshape(aligned, d_y)),))

    def mean(self, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Tensor:
        """Return the mean over one, several or (None) all axes, NaN if there are no values; `keepdims` as in `sum`."""
        total = self.sum(axis, keepdims)
        return total / (self.size / total.size if total.size else 1.0)

    def softmax(self, axis: int = -1) -> Tensor:
        """Return `exp(x) / sum exp(x)` along an axis, without overflow."""
        (axis,), arrays = axes_of("softmax", axis, self.ndim), self._arrays
        y = arrays.softmax(axis, self.data)
        return self._result(y, (self,), lambda d_y: (arrays.d_softmax(axis, d_y, y),))

    def reshape(self, *shape: int | Sequence[int]) -> Tensor:
        """Return the same numbers in a new shape; one length may be -1. Raise ShapeError if the size would change."""
        arrays, before = self._arrays, self.shape
        y = arrays.reshape(new_shape(before, shape), self.data)
        return self._result(y, (self,), lambda d_y: (arrays.reshape(before, d_y),))

    def transpose(self, *axes: int | Sequence[int]) -> Tensor:
        """Return a tensor whose axis k is axis `axes[k]` of this tensor. By default, the order of axes is reversed."""
        order = axes_of("transpose", unpacked(axes) if axes else range(self.ndim)[::-1], self.ndim)
        if len(order) != self.ndim:
            raise ShapeError(f"transpose requires each of the {self.ndim} axes of {self.shape} once, got {axes}.")
        back, arrays = tuple(order.index(k) for k in range(self.ndim)), self._arrays
        y = arrays.transpose(order, self.data)
        return self._result(y, (self,), lambda d_y: (arrays.transpose(back, d_y),))

    @property
    def T(self) -> Tensor:  # noqa: N802
        return self.transpose()


def gathered(tensors: Sequence[Tensor], places: npt.ArrayLike) -> list[Tensor]:
    """Return the rows at the same indices from each of several tensors on one device, without gradients.

    Args:
        tensors: Tensors with at least one axis.
        places: Indices of the rows, which may repeat.

    Raises:
        ShapeError: There is no tensor, a tensor has no axes, or an index is out of range.
        DeviceMismatchError: The tensors are not all on one device.
    """
    if not tensors or not all(tensor.ndim for tensor in tensors):
        raise ShapeError("gathered requires one or more tensors, each with at least one axis.")
    same_device("gathered", **{f"tensors[{k}]": tensor.device for k, tensor in enumerate(tensors)})
    indices, rows = np.asarray(places), min(tensor.shape[0] for tensor in tensors)
    if indices.ndim != 1 or (indices.size and indices.dtype.kind not in "iu"):
        raise ShapeError("gathered requires the indices of rows as a list of integers.")
    if indices.size and not 0 <= indices.min() <= indices.max() < rows:
        raise ShapeError(f"gathered requires rows from 0 to {rows - 1}, got {indices.min()} to {indices.max()}.")
    arrays = tensors[0]._arrays
    chosen = arrays.put(indices.astype(np.uint32))
    return [tensor._like(arrays.gather(chosen, tensor.data)) for tensor in tensors]
