"""Move several tensors and layers to another device."""

from collections.abc import Mapping
from typing import TypeVar, cast

from difflogic.devices.device import Device
from difflogic.errors import UsageError
from difflogic.tensor.nn import Module
from difflogic.tensor.tensor import Tensor

T = TypeVar("T")


def to_device(values: T, device: Device | str) -> T:
    """Copy one or several tensors and layers to another device.

    >>> moved = to_device({"x": Tensor([1.0]), "layers": [nn.Dense(1, 2)]}, "reference")
    >>> str(moved["layers"][0].weights.device)
    'reference'

    Args:
        values: A tensor, a layer, or a nested list, tuple or dict of them.
        device: Value of `--engine`, or a Device.

    Returns:
        The same structure with copies of all tensors and layers.

    Raises:
        UsageError: `values` contain an object of another type.
        DeviceError: The device cannot be used.
    """
    if isinstance(values, (Tensor, Module)):
        return cast(T, values.to(device))
    if isinstance(values, Mapping):
        return cast(T, {name: to_device(value, device) for name, value in values.items()})
    if isinstance(values, (list, tuple)):
        return cast(T, (list if isinstance(values, list) else tuple)(to_device(value, device) for value in values))
    raise UsageError(f"to_device moves tensors and layers, and lists, tuples and dicts of them, not {values!r:.80}.")
