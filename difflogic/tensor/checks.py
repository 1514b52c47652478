"""What tensors are given is checked here: each mistake is one sentence that says what was expected and what came."""

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
"""Axes of a tensor: as many as a GPU's kernels go through, and no more elsewhere, so that a program runs everywhere."""


def numbers(op: str, values: npt.ArrayLike, dtype: npt.DTypeLike) -> Array:
    """The values as an array. Raises UsageError for what holds no numbers, ShapeError for too many axes."""
    try:
        found = np.asarray(values)
    except ValueError:  # rows of different lengths
        found = np.array(None)
    if found.dtype.kind not in "biuf":
        raise UsageError(f"{op} takes numbers, or rows of them that are equally long, not {type(values).__name__}.")
    check_axes(op, found.shape)
    return np.asarray(found, dtype)


def check_axes(op: str, shape: Shape) -> None:
    """Raises ShapeError for more axes than a tensor has anywhere."""
    if len(shape) > MOST_AXES:
        raise ShapeError(f"{op} makes tensors of at most {MOST_AXES} axes, not {len(shape)}: reshape the values.")


def check_dtype(dtype: np.dtype[Any], device: Device) -> None:
    """Raises UsageError for a dtype that the device does not compute with."""
    if dtype != np.float32 and (dtype != np.float64 or device.adapter is not None):
        raise UsageError(
            f"{dtype.name} does not fit on {device.described()}: a tensor is float32, or on the processor float64."
        )


def whole(op: str, given: object) -> Shape:
    """A whole number, or several: sizes or axes. Raises ShapeError."""
    several = given if isinstance(given, Iterable) else (given,)
    try:
        return tuple(map(operator.index, several))
    except TypeError:
        raise ShapeError(f"{op} needs whole numbers, not {given!r}.") from None


def unpacked(given: Sequence[Any]) -> Any:
    """Arguments as they were given, or the one list that they were given as."""
    return given[0] if len(given) == 1 and isinstance(given[0], Iterable) else given


def axes_of(op: str, axis: object, ndim: int) -> Shape:
    """The axes that are meant, counted from the first; None means all. Raises ShapeError."""
    if axis is None:
        return tuple(range(ndim))
    given = whole(op, axis)
    axes = tuple(each + ndim if each < 0 else each for each in given)
    if wrong := [each for each, place in zip(given, axes, strict=True) if not 0 <= place < ndim]:
        raise ShapeError(
            f"{op} has no axis {wrong[0]}: this tensor has {ndim}, numbered from 0 or, backwards, from -1."
        )
    if len(set(axes)) < len(axes):
        raise ShapeError(f"{op} takes each axis once, not {given}.")
    return axes


def new_shape(before: Shape, given: Sequence[Any]) -> Shape:
    """The shape that `reshape` is asked for, in which one size may be -1. Raises ShapeError."""
    sizes = whole("reshape", unpacked(given))
    check_axes("reshape", sizes)
    size, known = math.prod(before), math.prod(each for each in sizes if each != -1)
    # Of no numbers at all the missing size could be any: it is refused, as NumPy does.
    after = tuple(size // known if each == -1 and known > 0 else each for each in sizes)
    if min(after, default=0) < 0 or sizes.count(-1) > 1 or math.prod(after) != size:
        raise ShapeError(f"reshape cannot make the shape {sizes} of {before}, which holds {size} numbers.")
    return after
