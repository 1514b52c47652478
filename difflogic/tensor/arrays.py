"""Arrays that store the values of tensors: an interface for all devices, and its NumPy implementation for the CPU."""

from functools import cache
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from difflogic.devices.device import Device
from difflogic.engine.shape import Array
from difflogic.tensor.kernels.adam import AdamSettings, adam
from difflogic.tensor.kernels.binary import binary
from difflogic.tensor.kernels.d_binary import d_binary
from difflogic.tensor.kernels.d_softmax import d_softmax
from difflogic.tensor.kernels.d_unary import d_unary
from difflogic.tensor.kernels.gather import gather
from difflogic.tensor.kernels.matmul import matmul
from difflogic.tensor.kernels.reduce import reduce
from difflogic.tensor.kernels.softmax import softmax
from difflogic.tensor.kernels.unary import unary

Shape = tuple[int, ...]
DeviceArray = Any
"""Array on a device, with `shape`, `dtype`, `size` and `ndim`; only the device's `Arrays` can access its values."""


class Arrays(Protocol):
    """Protocol of the array operations of a device: kernels, and transfers between the device and the host.

    Kernels take the same parameters as their NumPy references in `difflogic.tensor.kernels`. Only `adam`, `assign` and
    `assign_rows` change arrays in place.
    """

    def put(self, values: Array) -> DeviceArray: ...
    def get(self, x: DeviceArray) -> Array: ...
    def constant(self, value: float, dtype: np.dtype[Any]) -> DeviceArray: ...
    def assign(self, x: DeviceArray, values: DeviceArray | Array) -> None: ...
    def assign_rows(self, first: int, x: DeviceArray, rows: Array) -> None: ...
    def reshape(self, shape: Shape, x: DeviceArray) -> DeviceArray: ...
    def expand(self, shape: Shape, x: DeviceArray) -> DeviceArray: ...

    def unary(self, op: str, x: DeviceArray) -> DeviceArray: ...
    def d_unary(self, op: str, d_y: DeviceArray, saved: DeviceArray) -> DeviceArray: ...
    def binary(self, op: str, a: DeviceArray, b: DeviceArray) -> DeviceArray: ...
    def d_binary(self, op: str, d_y: DeviceArray, a: DeviceArray, b: DeviceArray) -> DeviceArray: ...
    def matmul(
        self, a: DeviceArray, b: DeviceArray, transpose_a: bool = False, transpose_b: bool = False
    ) -> DeviceArray: ...
    def transpose(self, axes: Shape, x: DeviceArray) -> DeviceArray: ...
    def gather(self, places: DeviceArray, x: DeviceArray) -> DeviceArray: ...
    def reduce(self, op: str, axes: Shape, x: DeviceArray) -> DeviceArray: ...
    def softmax(self, axis: int, x: DeviceArray) -> DeviceArray: ...
    def d_softmax(self, axis: int, d_y: DeviceArray, y: DeviceArray) -> DeviceArray: ...
    def adam(
        self,
        hyper: AdamSettings,
        rate: DeviceArray,
        count: DeviceArray,
        square: DeviceArray,
        gradient: DeviceArray,
        parameter: DeviceArray,
        mu: DeviceArray,
        nu: DeviceArray,
    ) -> None: ...


class HostArrays:
    """Implementation of `Arrays` on the CPU with NumPy and the reference kernels."""

    unary = staticmethod(unary)
    d_unary = staticmethod(d_unary)
    binary = staticmethod(binary)
    d_binary = staticmethod(d_binary)
    matmul = staticmethod(matmul)
    gather = staticmethod(gather)
    reduce = staticmethod(reduce)
    softmax = staticmethod(softmax)
    d_softmax = staticmethod(d_softmax)
    adam = staticmethod(adam)

    @staticmethod
    def put(values: Array) -> Array:
        return values  # no copy, since tensors have already copied the arrays of callers

    get = put

    @staticmethod
    def constant(value: float, dtype: npt.DTypeLike) -> Array:
        return np.asarray(value, dtype)

    @staticmethod
    def assign(x: Array, values: Array) -> None:
        x[...] = values

    @staticmethod
    def assign_rows(first: int, x: Array, rows: Array) -> None:
        x[first : first + len(rows)] = rows

    # `reshape` and `expand` return views; the gradient of a sum, for example, is one number, repeated. So no kernel may
    # write to its arguments, except `adam` and `assign`, which write to arrays that parameters own.

    @staticmethod
    def reshape(shape: Shape, x: Array) -> Array:
        return x.reshape(shape)

    @staticmethod
    def transpose(axes: Shape, x: Array) -> Array:
        return np.transpose(x, axes)

    @staticmethod
    def expand(shape: Shape, x: Array) -> Array:
        return np.broadcast_to(x, shape)


@cache
def arrays_of(device: Device) -> Arrays:
    """Return the array operations of a device, which the first call opens. Raise DeviceError if that fails."""
    if device.adapter is None:
        return HostArrays()
    from difflogic.gpu.arrays import GpuArrays
    from difflogic.gpu.probes import open_checked

    return GpuArrays(open_checked(str(device.adapter.index)))


device_of = cache(Device)
"""Function that returns the Device for a selector, such as `cpu` or `gpu:0`, from a cache."""


def d_operand(arrays: Arrays, op: str, side: str, d_y: DeviceArray, a: DeviceArray, b: DeviceArray) -> DeviceArray:
    """Return the adjoint of operand a or b (`side`) of `op`, in the shape of `d_y`, the adjoint of the result."""
    if op == "add" or (op == "subtract" and side == "a"):
        return d_y
    return arrays.unary("negate", d_y) if op == "subtract" else arrays.d_binary(f"{op} {side}", d_y, a, b)


def summed(arrays: Arrays, shape: Shape, d: DeviceArray) -> DeviceArray:
    """Return the adjoint `d` summed over all axes along which an operand of shape `shape` was broadcast."""
    # Shapes are aligned at the last axis. An operand (3, 1) in a result (4, 3, 5) was broadcast along a new axis 0, and
    # along axis 2, from 1 to 5: the sum over axes 0 and 2 has the shape (3,), which is reshaped to (3, 1).
    if d.shape == shape:
        return d
    new = len(d.shape) - len(shape)
    repeated = (k for k, size in enumerate(shape, start=new) if size == 1 != d.shape[k])
    return arrays.reshape(shape, arrays.reduce("sum", (*range(new), *repeated), d))
