"""Tensors keep their numbers in arrays: what every device offers, and the processor, which uses NumPy."""

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
from difflogic.tensor.kernels.transpose import transpose
from difflogic.tensor.kernels.unary import unary

Shape = tuple[int, ...]
DeviceArray = Any
"""An array of a device: it has a `shape`, `dtype`, `size` and `ndim`, and only its device's Arrays look into it."""


class Arrays(Protocol):
    """The eleven kernels on one device, and how numbers come there and back.

    The kernels take what their twins take, see `difflogic.tensor.kernels`. Only `adam` and `assign` change an array,
    and `assign_rows` a part of it.
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
    """Arrays of NumPy: the twins themselves."""

    unary = staticmethod(unary)
    d_unary = staticmethod(d_unary)
    binary = staticmethod(binary)
    d_binary = staticmethod(d_binary)
    matmul = staticmethod(matmul)
    transpose = staticmethod(transpose)
    gather = staticmethod(gather)
    reduce = staticmethod(reduce)
    softmax = staticmethod(softmax)
    d_softmax = staticmethod(d_softmax)
    adam = staticmethod(adam)

    @staticmethod
    def put(values: Array) -> Array:
        # A copy: a tensor's numbers are its own.
        return np.array(values)

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

    # Both are views and copy nothing: the gradient of a sum is one number, seen many times. So no kernel may write into
    # what it is given, but for `adam` and `assign` into the arrays that parameters own.

    @staticmethod
    def reshape(shape: Shape, x: Array) -> Array:
        return x.reshape(shape)

    @staticmethod
    def expand(shape: Shape, x: Array) -> Array:
        return np.broadcast_to(x, shape)


@cache
def arrays_of(device: Device) -> Arrays:
    """The arrays of a device, opened the first time. Raises DeviceError."""
    if device.adapter is None:
        return HostArrays()
    from difflogic.gpu.arrays import GpuArrays
    from difflogic.gpu.probes import open_checked

    return GpuArrays(open_checked(str(device.adapter.index)))


@cache
def device_of(selector: str) -> Device:
    """The device that is meant by an engine's word."""
    return Device(selector)


def d_operand(arrays: Arrays, op: str, side: str, d_y: DeviceArray, a: DeviceArray, b: DeviceArray) -> DeviceArray:
    """The adjoint of operand a or b, in the shape of the result."""
    if op == "add" or (op == "subtract" and side == "a"):
        return d_y
    return arrays.unary("negate", d_y) if op == "subtract" else arrays.d_binary(f"{op} {side}", d_y, a, b)


def summed(arrays: Arrays, shape: Shape, d: DeviceArray) -> DeviceArray:
    """An adjoint summed over the axes along which an operand of that shape was repeated."""
    # Shapes are matched from the last axis. An operand (3, 1) in a result (4, 3, 5) was repeated along a new axis 0,
    # and along axis 2, where its 1 became 5: the sum is over the axes 0 and 2, and its shape (3,) becomes (3, 1) again.
    if d.shape == shape:
        return d
    new = len(d.shape) - len(shape)
    repeated = (k for k, size in enumerate(shape, start=new) if size == 1 != d.shape[k])
    return arrays.reshape(shape, arrays.reduce("sum", (*range(new), *repeated), d))
