"""Tensors and layers on another device, several at once."""

from collections.abc import Mapping
from typing import TypeVar, cast

from difflogic.devices.device import Device
from difflogic.errors import UsageError
from difflogic.tensor.nn import Module
from difflogic.tensor.tensor import Tensor

T = TypeVar("T")


def to_device(values: T, device: Device | str) -> T:
    """The same on another device: a tensor or layer, or a list, tuple or dict of what may stand here.

    >>> moved = to_device({"x": Tensor([1.0]), "layers": [nn.Dense(1, 2)]}, "reference")
    >>> str(moved["layers"][0].weights.device)
    'reference'

    Raises UsageError for anything else, DeviceError.
    """
    if isinstance(values, (Tensor, Module)):
        return cast(T, values.to(device))
    if isinstance(values, Mapping):
        return cast(T, {name: to_device(each, device) for name, each in values.items()})
    if isinstance(values, (list, tuple)):
        return cast(T, (list if isinstance(values, list) else tuple)(to_device(each, device) for each in values))
    raise UsageError(f"to_device moves tensors and layers, and lists, tuples and dicts of them, not {values!r:.80}.")
