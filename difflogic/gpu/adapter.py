"""Adapters: what there is, which one is meant, and a device with portable limits.

Of what a kernel is made of (invocations, bindings) a device is asked for no more than what every WebGPU implementation
grants, so that a kernel that outgrows it fails here and not at a user's.
"""

import functools
from dataclasses import dataclass
from typing import Any

from difflogic.errors import NoAdapterError, first_line

BACKENDS = ("Vulkan", "Metal", "DX12")

TIMESTAMPS = "timestamp-query"
"""The one feature that is asked for where it exists: it changes nothing but what can be measured."""

PORTABLE_LIMITS = {
    "max-storage-buffers-per-shader-stage": 8,
    "max-compute-invocations-per-workgroup": 256,
    "max-compute-workgroup-size-x": 256,
    # With split chunks a kernel takes what its levels need, and the planner asks first. All others keep to 16 KiB.
    "max-compute-workgroup-storage-size": 49152,
    "max-compute-workgroups-per-dimension": 65535,
    # memory is no matter of portability: large work needs large buffers, and says so where a device lacks them
    "max-storage-buffer-binding-size": (1 << 31) - 4,
    "max-buffer-size": (1 << 31) - 4,
    "max-uniform-buffer-binding-size": 16384,
}

NO_ADAPTER = (
    "No GPU adapter was found: install a Vulkan driver (on Debian or Ubuntu the package "
    "mesa-vulkan-drivers brings a software one), or use `engine` cpu."
)


@dataclass(frozen=True)
class Adapter:
    """One adapter as it describes itself, in the order of `list_adapters`."""

    index: int
    name: str
    type: str
    """DiscreteGPU, IntegratedGPU, VirtualGPU, CPU or Unknown."""
    backend: str
    driver: str
    vendor: str
    limits: dict[str, int]
    features: tuple[str, ...]
    handle: Any

    @property
    def software(self) -> bool:
        """True where the adapter is a program on the CPU (lavapipe, SwiftShader, WARP)."""
        return self.type == "CPU"

    def granted_limits(self, wanted: dict[str, int] | None = None) -> dict[str, int]:
        """The smaller of the adapter's and the portable (or the wanted) limits: what a device is asked for."""
        return {name: min(self.limits[name], value) for name, value in (PORTABLE_LIMITS | (wanted or {})).items()}


@functools.cache
def _wgpu() -> Any:
    """The wgpu module, told to look only at the backends that we use: faster, and no stray output."""
    import wgpu
    from wgpu.backends.wgpu_native import extras

    extras.set_instance_extras(backends=list(BACKENDS))
    return wgpu


@functools.cache
def list_adapters() -> tuple[Adapter, ...]:
    """All adapters; hardware first, each kind in the driver's order."""
    found = [_describe(handle) for handle in _wgpu().gpu.enumerate_adapters_sync()]
    # A stable sort: `--engine gpu:0` is the same adapter from one start to the next, as long as the driver says so.
    found.sort(key=lambda adapter: adapter["type"] == "CPU")
    return tuple(Adapter(index=index, **adapter) for index, adapter in enumerate(found))


def _describe(handle: Any) -> dict[str, Any]:
    info = handle.info
    return {
        "name": info["device"],
        "type": info["adapter_type"],
        "backend": info["backend_type"],
        "driver": info["description"],
        "vendor": info["vendor"],
        "limits": dict(handle.limits),
        "features": tuple(sorted(handle.features)),
        "handle": handle,
    }


def select_adapter(selector: str | None = None, require_hardware: bool = False) -> Adapter:
    """The adapter of that index or (part of a) name; without a selector, the first.

    Raises NoAdapterError where there is none, or only software under `require_hardware`.
    """
    adapters = list_adapters()
    if not adapters:
        raise NoAdapterError(NO_ADAPTER)
    known = "; ".join(f"{a.index}: {a.name}" for a in adapters)
    part = (selector or "").lower()
    matching = [a for a in adapters if (a.index == int(part) if part.isdigit() else part in a.name.lower())]
    if not matching:
        raise NoAdapterError(f"No GPU adapter matches {selector!r}: expected an index or part of a name of: {known}.")
    usable = [a for a in matching if not (require_hardware and a.software)]
    if not usable:
        raise NoAdapterError(
            f"--require-hardware was given, but only software adapters were found ({known}): install the GPU's driver, "
            "or leave the option out."
        )
    return usable[0]


def open_device(adapter: Adapter, limits: dict[str, int] | None = None) -> Any:
    """A wgpu device with `granted_limits`. Raises NoAdapterError where the adapter refuses."""
    granted = adapter.granted_limits(limits)
    # Limits are asked for, not taken as they come: a shader that needs more than portable ones then fails on every
    # machine.
    features = [TIMESTAMPS] if TIMESTAMPS in adapter.features else []
    try:
        return adapter.handle.request_device_sync(
            label=f"difflogic on {adapter.name}", required_limits=granted, required_features=features
        )
    except RuntimeError as error:
        raise NoAdapterError(
            f"The adapter {adapter.name} refused to open a device: {first_line(error)}. Try another adapter "
            "(difflogic doctor --list lists them), or `engine` cpu."
        ) from error
