"""Wrapper of a wgpu device that creates pipelines, buffers and bind groups, and counts transferred bytes.

Training creates its buffers and dispatches with the methods of `DeviceVerbs`. A `GpuDevice` executes them, and a
`RecordingDevice` only records them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from difflogic.engine.api import EngineInfo
from difflogic.errors import DeviceError, KernelError, LimitError, first_line
from difflogic.gpu.adapter import Adapter, open_device
from difflogic.gpu.launch import LaunchConfig
from difflogic.gpu.shaders import Binding, Sizes, Source, load_source, with_sizes

_LAYOUT_TYPE = {"uniform": "uniform", "read": "read-only-storage", "read_write": "storage"}
_COMPUTE = 4  # GPUShaderStage.COMPUTE


class DeviceVerbs(Protocol):
    """Methods that create a training's buffers and dispatches, either to execute or to record them."""

    limits: dict[str, int]

    @property
    def adapter(self) -> Adapter:
        """Adapter for which training is planned."""

    def buffer(self, name: str, size: int, uniform: bool = False) -> Any:
        """Create a zeroed storage or uniform buffer of `size` bytes."""

    def upload(self, buffer: Any, data: npt.NDArray[Any] | bytes, purpose: str, offset: int = 0) -> None:
        """Write `data` to `buffer` at the byte `offset`, and add its size to the uploaded bytes of `purpose`."""

    def bind(self, source: Source, buffers: dict[str, Any]) -> Any:
        """Create a kernel's bind group; `buffers` maps binding names to buffers or (buffer, offset, size) in bytes."""

    def pipeline(self, kernel: str, constants: dict[str, int], sizes: Sizes = ()) -> Any:
        """Return a kernel's pipeline with these `override` constants; fields in `sizes` may become constants too."""

    def staging(self, name: str, size: int) -> Any:
        """Create a buffer of `size` bytes that the host can map for reading."""


def computing(device: DeviceVerbs) -> GpuDevice:
    """Return `device` if it can compute, that is, is a GpuDevice. Raises DeviceError for a RecordingDevice."""
    if not isinstance(device, GpuDevice):
        raise DeviceError("Expected a GpuDevice, got a recording, which cannot compute: open a device.")
    return device


class GpuDevice:
    """Wrapper of an open wgpu device, which labels each created object with its name."""

    def __init__(self, adapter: Adapter, limits: dict[str, int] | None = None) -> None:
        self.adapter = adapter
        self.handle = open_device(adapter, limits)
        self.limits: dict[str, int] = dict(self.handle.limits)
        self.queue = self.handle.queue
        self.uploaded: Counter[str] = Counter()
        self.downloaded: Counter[str] = Counter()
        """Numbers of bytes transferred to and from the device, by purpose such as "circuit"."""
        self.bakes_sizes = not adapter.software
        """True if kernels are compiled for the sizes of their plan, which on software would take seconds longer."""
        self.trusts_kernels = not adapter.software
        """True if kernels with compiled-in sizes have no bounds checks and loop counters."""
        self._pipelines: dict[tuple[str, str, tuple[int, ...]], Any] = {}
        self._layouts: dict[tuple[Binding, ...], Any] = {}
        self._modules: dict[str, Any] = {}
        self._marker: Any = None
        self.before_waiting: list[Callable[[], None]] = []
        """Functions that `wait` calls first, to submit pending work of other objects."""

    def info(self, launch: LaunchConfig) -> EngineInfo:
        """Return a description of the device and of the schedule `launch`, for output and manifests."""
        adapter = self.adapter
        return EngineInfo(
            engine="gpu",
            adapter=adapter.name,
            adapter_type=adapter.type,
            backend=adapter.backend,
            driver=adapter.driver,
            software=adapter.software,
            variant=launch.written(),
        )

    def pipeline(self, kernel: str, constants: dict[str, int], sizes: Sizes = ()) -> Any:
        """Return the compute pipeline of a kernel, compiled at its first use and shared by plans with equal code.

        Raises KernelError if the shader does not compile.
        """
        source = self.specialized(load_source(kernel), "shape", sizes)
        # The key is what the driver compiles, not the schedule: schedules that differ in another kernel's workgroup
        # size, and plans that differ in sizes that the kernel does not read, share a pipeline.
        key = (kernel, source.text, tuple(constants.values()))
        if key not in self._pipelines:
            module = self.module(source, is_trusted=bool(sizes) and self.trusts_kernels)
            self._pipelines[key] = self.new_pipeline(source, module, constants)
        return self._pipelines[key]

    def specialized(self, source: Source, uniform: str, sizes: Sizes) -> Source:
        """Return the source, with the uniform's fields in `sizes` replaced by constants if `bakes_sizes` is True."""
        return with_sizes(source, uniform, sizes) if sizes and self.bakes_sizes else source

    def new_pipeline(self, source: Source, module: Any, constants: dict[str, int]) -> Any:
        """Create a compute pipeline from the shader module of `source`; `bind` creates the matching bind groups."""
        name, layouts = source.name, [self._layout(source.bindings)]
        layout = self.handle.create_pipeline_layout(label=name, bind_group_layouts=layouts)
        compute = {"module": module, "entry_point": "main", "constants": constants}
        return self.handle.create_compute_pipeline(label=name, layout=layout, compute=compute)

    def module(self, source: Source, is_trusted: bool = False) -> Any:
        """Return the shader module of `source`, compiled at its first use. Raises KernelError if it is not valid."""
        if source.text not in self._modules:
            self._modules[source.text] = self.compile(source, is_trusted)
        return self._modules[source.text]

    def compile(self, source: Source, is_trusted: bool = False) -> Any:
        """Compile `source` to a shader module; if `is_trusted`, without checks of indices and loops.

        Raises KernelError, which names file and line, if the source is not valid.
        """
        import wgpu

        try:
            if is_trusted:
                return _trusted_module(self.handle, source)
            return self.handle.create_shader_module(label=source.name, code=source.text)
        except wgpu.GPUError as error:
            raise KernelError(f"Could not compile the shader {source.name}: {source.locate(str(error))}") from error

    def _layout(self, bindings: tuple[Binding, ...]) -> Any:
        if bindings not in self._layouts:
            entries = [
                {"binding": number, "visibility": _COMPUTE, "buffer": {"type": _LAYOUT_TYPE[binding.access]}}
                for number, binding in enumerate(bindings)
            ]
            label = " ".join(binding.name for binding in bindings)
            self._layouts[bindings] = self.handle.create_bind_group_layout(label=label, entries=entries)
        return self._layouts[bindings]

    def bind(self, source: Source, buffers: dict[str, Any]) -> Any:
        entries = []
        for number, binding in enumerate(source.bindings):
            given = buffers[binding.name]
            buffer, offset, size = given if isinstance(given, tuple) else (given, 0, given.size)
            entries.append({"binding": number, "resource": {"buffer": buffer, "offset": offset, "size": size}})
        layout = self._layout(source.bindings)
        return self.handle.create_bind_group(label=source.name, layout=layout, entries=entries)

    def buffer(self, name: str, size: int, uniform: bool = False) -> Any:
        """Create a zeroed buffer of `size` bytes. Raises LimitError if the device is out of memory."""
        import wgpu

        usage = wgpu.BufferUsage.COPY_DST | wgpu.BufferUsage.COPY_SRC
        usage |= wgpu.BufferUsage.UNIFORM if uniform else wgpu.BufferUsage.STORAGE
        return self._create(name, size, usage)

    def staging(self, name: str, size: int) -> Any:
        import wgpu

        return self._create(name, size, wgpu.BufferUsage.COPY_DST | wgpu.BufferUsage.MAP_READ)

    def _create(self, name: str, size: int, usage: int) -> Any:
        import wgpu

        try:
            return self.handle.create_buffer(label=name, size=size, usage=usage)
        except wgpu.GPUError as error:
            raise LimitError(
                f"Could not allocate {size / 1e6:.1f} MB for the buffer '{name}' ({first_line(error)}): use a "
                "smaller grid, batch or circuit."
            ) from error

    def upload(self, buffer: Any, data: npt.NDArray[Any] | bytes, purpose: str, offset: int = 0) -> None:
        payload = data if isinstance(data, bytes) else np.ascontiguousarray(data).tobytes()
        # Queued before everything that is submitted later; wgpu copies the bytes at once, so the array may change.
        self.queue.write_buffer(buffer, offset, payload)
        self.uploaded[purpose] += len(payload)

    def wait(self) -> None:
        """Wait until all submitted work is done."""
        for submit in self.before_waiting:
            submit()
        # wgpu's own call does not work in every version; reading a buffer waits for all work queued before.
        if self._marker is None:
            self._marker = self.buffer("marker", 4)
        self.queue.read_buffer(self._marker)

    def clear(self, buffer: Any) -> None:
        """Queue a command that zeroes `buffer` after all work submitted so far."""
        encoder = self.handle.create_command_encoder()
        encoder.clear_buffer(buffer)
        self.queue.submit([encoder.finish()])

    def download(self, buffer: Any, dtype: npt.DTypeLike, purpose: str, size: int | None = None) -> npt.NDArray[Any]:
        """Wait for all submitted work, and return a buffer or its first `size` bytes as a flat array of `dtype`."""
        data = self.queue.read_buffer(buffer, 0, size or buffer.size)
        self.downloaded[purpose] += len(data)
        return np.frombuffer(data, dtype=dtype).copy()

    def read_staging(self, staging: Any, size: int, dtype: npt.DTypeLike, purpose: str) -> npt.NDArray[Any]:
        """Wait for the copy into a staging buffer, and return its first `size` bytes as a flat array of `dtype`."""
        import wgpu

        staging.map_sync(wgpu.MapMode.READ, 0, size)
        try:
            data = bytes(staging.read_mapped(0, size))
        finally:
            staging.unmap()
        self.downloaded[purpose] += size
        return np.frombuffer(data, dtype=dtype).copy()


def _trusted_module(handle: Any, source: Source) -> Any:
    """Create a shader module without the bounds checks and loop counters that naga adds.

    The shader's indices must depend only on tables of this package, and its loops must end. wgpu-py has no function
    for this, so the native library is called, as in wgpu-py's `create_shader_module`.
    """
    from wgpu.backends.wgpu_native import _api as native

    text = [native.ffi.new("char[]", each.encode()) for each in (source.name, source.text)]
    name, code = ({"data": each, "length": len(each) - 1} for each in text)
    chain = {"next": native.ffi.NULL, "sType": native.lib.WGPUSType_ShaderSourceWGSL}
    wgsl = native.ffi.new("WGPUShaderSourceWGSL *", {"chain": chain, "code": code})
    link = native.ffi.cast("WGPUChainedStruct *", wgsl)
    descriptor = native.ffi.new("WGPUShaderModuleDescriptor *", {"nextInChain": link, "label": name})
    made = native.libf.wgpuDeviceCreateShaderModuleTrusted(handle._internal, descriptor, 0)
    return native.GPUShaderModule(source.name, made, handle)
