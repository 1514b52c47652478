"""List and select GPU adapters, and open a device with portable limits.

Devices are opened with limits (invocations, bindings) that every WebGPU implementation grants, so that a kernel that
exceeds them fails here and not on a user's machine.
"""

import functools
from dataclasses import dataclass
from typing import Any

from difflogic.errors import NoAdapterError, first_line

BACKENDS = ("Vulkan", "Metal", "DX12")

TIMESTAMPS = "timestamp-query"
"""Name of the only optional device feature that is requested; it only enables time measurements."""

PORTABLE_LIMITS = {
    "max-storage-buffers-per-shader-stage": 8,
    "max-compute-invocations-per-workgroup": 256,
    "max-compute-workgroup-size-x": 256,
    # Only fused steps with split chunks and the blocked simulation use more than 16 KiB, if the device grants it.
    "max-compute-workgroup-storage-size": 49152,
    "max-compute-workgroups-per-dimension": 65535,
    # Memory limits need not be portable: large work needs large buffers, and an error names the limit it exceeds.
    "max-storage-buffer-binding-size": (1 << 31) - 4,
    "max-buffer-size": (1 << 31) - 4,
    "max-uniform-buffer-binding-size": 16384,
}

NO_ADAPTER = (
    "No GPU adapter was found: install a Vulkan driver (on Debian or Ubuntu the package "
    "mesa-vulkan-drivers contains a software driver), or set `engine` to cpu."
)


@dataclass(frozen=True)
class Adapter:
    """Description of an adapter; `index` is its index in `list_adapters()`."""

    index: int
    name: str
    type: str
    """Kind of adapter: DiscreteGPU, IntegratedGPU, VirtualGPU, CPU or Unknown."""
    backend: str
    driver: str
    vendor: str
    limits: dict[str, int]
    features: tuple[str, ...]
    handle: Any

    @property
    def software(self) -> bool:
        """True if the adapter is emulated on the CPU (lavapipe, SwiftShader, WARP)."""
        return self.type == "CPU"

    def granted_limits(self, wanted: dict[str, int] | None = None) -> dict[str, int]:
        """Return the limits to request: PORTABLE_LIMITS updated with `wanted`, each capped at the adapter's limit."""
        return {name: min(self.limits[name], value) for name, value in (PORTABLE_LIMITS | (wanted or {})).items()}


@functools.cache
def _wgpu() -> Any:
    """Import wgpu restricted to BACKENDS, which is faster and avoids warnings."""
    import wgpu
    from wgpu.backends.wgpu_native import extras

    extras.set_instance_extras(backends=list(BACKENDS))
    return wgpu


@functools.cache
def list_adapters() -> tuple[Adapter, ...]:
    """Return all adapters, hardware before software, and within each kind in the driver's order."""
    # A stable sort: `--engine gpu:0` is the same adapter in every process if the driver's order is the same.
    handles = sorted(_wgpu().gpu.enumerate_adapters_sync(), key=lambda handle: handle.info["adapter_type"] == "CPU")
    return tuple(_describe(index, handle) for index, handle in enumerate(handles))


def _describe(index: int, handle: Any) -> Adapter:
    info = handle.info
    return Adapter(
        index=index,
        name=info["device"],
        type=info["adapter_type"],
        backend=info["backend_type"],
        driver=info["description"],
        vendor=info["vendor"],
        limits=dict(handle.limits),
        features=tuple(sorted(handle.features)),
        handle=handle,
    )


def select_adapter(selector: str | None = None, require_hardware: bool = False) -> Adapter:
    """Return the first adapter with the index `selector`, or whose name contains `selector`; None matches any adapter.

    Raises NoAdapterError if no adapter matches, or if `require_hardware` is True and only software adapters match.
    """
    adapters = list_adapters()
    if not adapters:
        raise NoAdapterError(NO_ADAPTER)
    known = "; ".join(f"{a.index}: {a.name}" for a in adapters)
    part = (selector or "").lower()
    matching = [a for a in adapters if (a.index == int(part) if part.isdigit() else part in a.name.lower())]
    if not matching:
        raise NoAdapterError(f"No GPU adapter matches {selector!r}: expected an index or part of a name in: {known}.")
    usable = [a for a in matching if not (require_hardware and a.software)]
    if not usable:
        raise NoAdapterError(
            f"--require-hardware was given, but only software adapters were found ({known}): install the GPU's driver, "
            "or omit --require-hardware."
        )
    return usable[0]


def open_device(adapter: Adapter, limits: dict[str, int] | None = None) -> Any:
    """Open a wgpu device with the adapter's `granted_limits(limits)`. Raises NoAdapterError if opening fails."""
    granted = adapter.granted_limits(limits)
    # Request portable limits instead of the adapter's, so that a shader that exceeds them fails on every machine.
    features = [TIMESTAMPS] if TIMESTAMPS in adapter.features else []
    try:
        return adapter.handle.request_device_sync(
            label=f"difflogic on {adapter.name}", required_limits=granted, required_features=features
        )
    except RuntimeError as error:
        raise NoAdapterError(
            f"Could not open a device on the adapter {adapter.name}: {first_line(error)}. Select another adapter "
            "(`difflogic doctor --list` lists them), or set `engine` to cpu."
        ) from error
