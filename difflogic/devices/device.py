"""Devices for tensors and training; on the command line, `--engine` selects a device."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from difflogic.devices import open as devices
from difflogic.engine.api import Engine
from difflogic.errors import DeviceError, DeviceMismatchError, NoAdapterError
from difflogic.system.processor import processor_name

if TYPE_CHECKING:
    from difflogic.gpu.adapter import Adapter

Kind = Literal["processor", "hardware", "software"]


@dataclass(frozen=True, repr=False)
class Device:
    """GPU adapter, CPU engine or reference on this machine; `str(device)` is its value of `--engine`.

    Selectors are resolved on this machine: `Device("gpu")` is `gpu:0`, `Device("gpu:lavapipe")` is the adapter with
    that name, `Device("auto")` is the device that `auto` chooses. `is_available` tests whether the device exists.

        >>> difflogic.Device("gpu") == difflogic.Device("gpu:0")
        True
        >>> str(difflogic.Device("reference"))
        'reference'

    Raises:
        UsageError: The selector names an unknown kind of device.
    """

    selector: str = "auto"

    def __post_init__(self) -> None:
        object.__setattr__(self, "selector", _canonical(str(self.selector)))

    def __str__(self) -> str:
        return self.selector

    def __repr__(self) -> str:
        return f"Device({self.selector!r})"

    @classmethod
    def all(cls) -> list[Device]:
        """Return all devices of this machine: GPU adapters (hardware first), then `cpu` and `reference`."""
        return [*(cls(f"gpu:{adapter.index}") for adapter in devices.gpu_adapters()), cls("cpu"), cls("reference")]

    @property
    def kind(self) -> Kind:
        """`hardware` or `software` for a GPU adapter, otherwise `processor`. Raises NoAdapterError if it is missing."""
        adapter = self.adapter
        if adapter is None:
            return "processor"
        return "software" if adapter.software else "hardware"

    @property
    def name(self) -> str:
        """Name of the adapter or the processor. Raises NoAdapterError if the adapter is missing."""
        adapter = self.adapter
        return processor_name() if adapter is None else adapter.name

    @property
    def adapter(self) -> Adapter | None:
        """GPU adapter of the device, or None for the CPU. Raises NoAdapterError if the adapter is missing."""
        kind, which = devices.parse(self.selector)
        return devices.gpu_adapter(which) if kind == "gpu" else None

    def is_available(self, hardware: bool = False) -> bool:
        """Return whether the device exists and can be used; a GPU adapter must pass the self-test.

        The test takes seconds and runs once per driver. If `hardware` is True, the device must also be a hardware GPU.
        """
        try:
            if hardware and self.kind != "hardware":
                return False
            devices.place(self.selector, trusted=True)
        except DeviceError:
            return False
        return True

    def open(self) -> Engine:
        """Open and return the engine of this device. Raises DeviceError if that fails."""
        return devices.open_engine(self.selector)

    def synchronize(self) -> None:
        """Wait until all work submitted to a GPU is done. On the CPU, work is done when a call returns."""
        adapter = self.adapter
        if adapter is not None:
            from difflogic.gpu.probes import open_checked

            open_checked(str(adapter.index)).wait()

    def described(self) -> str:
        """Return the selector and, if there is an adapter, its name for messages, such as `gpu:0 (llvmpipe)`."""
        adapter = None
        with suppress(NoAdapterError):
            adapter = self.adapter
        return self.selector if adapter is None else f"{self.selector} ({adapter.name.partition(' (')[0]})"


def same_device(what: str, **operands: Device) -> Device:
    """Return the device of all operands of the operation `what`. Raises DeviceMismatchError if their devices differ."""
    (first, device), *others = operands.items()
    for other, elsewhere in others:
        if elsewhere != device:
            raise DeviceMismatchError(
                f"{what} expects operands on the same device, but {first} is on {device.described()} and {other} on "
                f"{elsewhere.described()}: move one, such as {other}.to({first}.device)."
            )
    return device


def _canonical(selector: str) -> str:
    kind, which = devices.parse(selector)
    if kind == "auto":
        return devices.open_engine(selector).selector
    if kind != "gpu":
        return kind
    if which is None or which.isdigit():
        return f"gpu:{int(which or 0)}"
    try:
        return f"gpu:{devices.gpu_adapter(which).index}"
    except NoAdapterError:  # a missing device is reported when it is used
        return selector
