"""Steps that are done again and again on arrays of the same shapes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from difflogic.devices.device import Device
from difflogic.tensor.arrays import Shape, arrays_of, device_of
from difflogic.tensor.tensor import Tensor

T = TypeVar("T")
Kinds = tuple[tuple[Shape, np.dtype[Any]], ...]

MOST_RECORDINGS = 8
"""Kinds of inputs for which a recording, and its memory, is kept."""


class Recorded(Generic[T]):
    """A function of tensors that a GPU does again without the host, but for the tensors that it is given.

    On a GPU the first call with inputs of some shapes runs the function and records what it has the device do; any
    later call fills in the new inputs and has that done again, which takes the host a tenth of the time. On the
    processor each call runs the function. Results are tensors of the recording: the next call overwrites them.

    On a GPU the Python code of the function runs only once, while it is recorded. So numbers that change have to be
    inputs, and the gradients that it makes be used up by a step of an optimiser within it. Parameters are the tensors
    that it found then: change them by `assign`.

    Args:
        function: takes tensors, without `requires_grad`, and returns a tensor or several, or nothing.
        device: where the inputs are put.
    """

    def __init__(self, function: Callable[..., T], device: Device | str = "cpu") -> None:
        self._function = function
        self._device = device_of(device) if isinstance(device, str) else device
        self._recordings: OrderedDict[Kinds, tuple[list[Tensor], Callable[[], T]]] = OrderedDict()

    def __call__(self, *inputs: Tensor | npt.ArrayLike) -> T:
        given = [each if isinstance(each, Tensor) else np.asarray(each, np.float32) for each in inputs]
        kinds = tuple((each.shape, each.dtype) for each in given)
        known = kinds in self._recordings
        filled = self._recordings[kinds][0] if known else [self._empty(*kind) for kind in kinds]
        for tensor, values in zip(filled, given, strict=True):
            tensor.assign(values)
        if known:
            self._recordings.move_to_end(kinds)
            return self._recordings[kinds][1]()
        result, again = arrays_of(self._device).record(lambda: self._function(*filled))
        self._recordings[kinds] = filled, again
        if len(self._recordings) > MOST_RECORDINGS:
            self._recordings.popitem(last=False)
        return result

    def _empty(self, shape: Shape, dtype: np.dtype[Any]) -> Tensor:
        return Tensor(np.zeros(shape), self._device, dtype=dtype)
