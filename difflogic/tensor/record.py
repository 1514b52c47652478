"""Steps that are done again and again on arrays of the same shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from difflogic.devices.device import Device
from difflogic.tensor.arrays import Shape, arrays_of, device_of
from difflogic.tensor.tensor import Tensor

T = TypeVar("T")


class Recorded(Generic[T]):
    """A function of tensors that a GPU does again without the host, but for the tensors that it is given.

    On a GPU the first call with inputs of some shapes runs the function and records what it has the device do; any
    later call fills in the new inputs and has that done again, which takes the host a tenth of the time. On the
    processor each call runs the function. Results are tensors of the recording: the next call overwrites them.

    What the function does on the host, it does when it is recorded alone: numbers that change have to be inputs, and
    gradients be used up by a step of the optimiser. Parameters are those that it found: change them by `assign`.

    Args:
        function: takes tensors, without `requires_grad`, and returns a tensor or several, or nothing.
        device: where the inputs are put.
    """

    def __init__(self, function: Callable[..., T], device: Device | str = "cpu") -> None:
        self._function = function
        self._device = device_of(device) if isinstance(device, str) else device
        self._recordings: dict[tuple[Shape, ...], tuple[list[Tensor], Callable[[], T]]] = {}

    def __call__(self, *inputs: Tensor | npt.ArrayLike) -> T:
        given = [each if isinstance(each, Tensor) else np.asarray(each, np.float32) for each in inputs]
        shapes = tuple(each.shape for each in given)
        known = shapes in self._recordings
        filled = self._recordings[shapes][0] if known else [Tensor(np.zeros(shape), self._device) for shape in shapes]
        for tensor, values in zip(filled, given, strict=True):
            tensor.assign(values)
        if known:
            return self._recordings[shapes][1]()
        result, again = arrays_of(self._device).record(lambda: self._function(*filled))
        self._recordings[shapes] = filled, again
        return result
