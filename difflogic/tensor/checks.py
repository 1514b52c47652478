"""Check the arguments of tensor operations, with error messages that name the operation (`op`)."""

import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic.devices.device import Device
from difflogic.engine.shape import Array
from difflogic.errors import ShapeError, UsageError
from difflogic.tensor.arrays import Shape

MOST_AXES = 8
"""Maximum number of axes of a tensor, a limit of GPU kernels that all devices share for portability."""


def numbers(op: str, values: npt.ArrayLike, dtype: npt.DTypeLike) -> Array:
    """Return `values` as an array of `dtype`, copied if needed. Raise UsageError, or ShapeError for too many axes."""
    try:
        array = np.asarray(values)
    except ValueError:  # rows of different lengths
        array = np.array(None)
    if array.dtype.kind not in "biuf":
        raise UsageError(f"{op} requires numbers, or rows of them of equal length, got {type(values).__name__}.")
    check_axes(op, array.shape)
    return np.asarray(array, dtype)


def check_axes(op: str, shape: Shape) -> None:
    """Raise ShapeError if `shape` has more than MOST_AXES axes."""
    if len(shape) > MOST_AXES:
        raise ShapeError(f"{op} requires at most {MOST_AXES} axes, got {len(shape)}: reshape the values.")


def check_dtype(dtype: np.dtype[Any], device: Device) -> None:
    """Raise UsageError if tensors on the device do not support the dtype."""
    if dtype != np.float32 and (dtype != np.float64 or device.adapter is not None):
        raise UsageError(
            f"{dtype.name} is not supported on {device.described()}: tensors must be float32 (on a CPU also float64)."
        )


def integers(op: str, value: object) -> Shape:
    """Return an integer or several integers, such as axes, as a tuple. Raise ShapeError for any other value."""
    values = value if isinstance(value, Iterable) else (value,)
    try:
        return tuple(map(operator.index, values))
    except TypeError:
        raise ShapeError(f"{op} requires integers, got {value!r}.") from None


def unpacked(arguments: Sequence[Any]) -> Any:
    """Return `arguments`, or their only element if it is a sequence."""
    return arguments[0] if len(arguments) == 1 and isinstance(arguments[0], Iterable) else arguments


def axes_of(op: str, axis: object, ndim: int) -> Shape:
    """Return axes as nonnegative indices; None stands for all axes. Raise ShapeError if one is invalid or repeated."""
    if axis is None:
        return tuple(range(ndim))
    indices = integers(op, axis)
    axes = tuple(index + ndim if index < 0 else index for index in indices)
    if wrong := [index for index, place in zip(indices, axes, strict=True) if not 0 <= place < ndim]:
        raise ShapeError(f"{op}: the axis {wrong[0]} is out of range for a tensor with {ndim} dimensions.")
    if len(set(axes)) < len(axes):
        raise ShapeError(f"{op} requires different axes, got {indices}.")
    return axes


def new_shape(before: Shape, arguments: Sequence[Any]) -> Shape:
    """Return the new shape of a tensor of shape `before`; one size may be -1. Raise ShapeError if the size changes."""
    sizes = integers("reshape", unpacked(arguments))
    check_axes("reshape", sizes)
    size, rest = math.prod(before), math.prod(length for length in sizes if length != -1)
    # If there are no numbers, any length would fit, so -1 is refused, as in NumPy.
    after = tuple(size // rest if length == -1 and rest > 0 else length for length in sizes)
    if min(after, default=0) < 0 or sizes.count(-1) > 1 or math.prod(after) != size:
        raise ShapeError(f"reshape of {before} requires sizes that determine a shape of {size} numbers, got {sizes}.")
    return after
