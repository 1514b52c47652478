"""Run shaders that are not in the table of kernels, such as the self-tests of a device."""

from collections.abc import Sequence
from threading import Lock

import numpy as np
import numpy.typing as npt

from difflogic.engine.shape import Array
from difflogic.errors import DeviceError
from difflogic.gpu.adapter import select_adapter
from difflogic.gpu.device import GpuDevice
from difflogic.gpu.shaders import Source, load_source
from difflogic.gpu.submit import Dispatch, encode

Words = npt.NDArray[np.uint32]

LOOP_TRIPS = 40_000
CUTS_LOOPS = (
    "the driver silently cuts long loops short, as lavapipe does before Mesa 25: install a newer driver, or use "
    "--engine cpu"
)
_OPENED: dict[int, GpuDevice] = {}
"""Open devices by adapter index, so that a process compiles pipelines once and can share buffers."""
_OPENING = Lock()


class AnyShader:
    """Compute shader (a self-test or an exported circuit) with any number of uniforms, then storage buffers."""

    def __init__(self, device: GpuDevice, source: Source, arrays: Sequence[Array], uniforms: int = 1) -> None:
        """Create a buffer per array; the first `uniforms` are uniforms. Raises KernelError if `source` is not valid."""
        self._device = device
        self._pipeline = device.handle.create_compute_pipeline(
            label=source.name, layout="auto", compute={"module": device.compile(source), "entry_point": "main"}
        )
        self.buffers = [
            device.buffer(f"{source.name} {index}", array.nbytes, uniform=index < uniforms)
            for index, array in enumerate(arrays)
        ]
        for buffer, array in zip(self.buffers, arrays, strict=True):
            device.upload(buffer, array, "shader")

    def dispatch(self, order: Sequence[int], workgroups: tuple[int, int]) -> Dispatch:
        """Return a dispatch of `workgroups` (x, y) that binds the buffer with index `order[i]` as number i."""
        buffers = [self.buffers[index] for index in order]
        entries = [{"binding": binding, "resource": {"buffer": buffer}} for binding, buffer in enumerate(buffers)]
        group = self._device.handle.create_bind_group(layout=self._pipeline.get_bind_group_layout(0), entries=entries)
        return Dispatch("", self._pipeline, group, *workgroups)

    def run(self, order: Sequence[int], workgroups: tuple[int, int]) -> None:
        self._device.queue.submit([encode(self._device, [self.dispatch(order, workgroups)]).finish()])

    def read(self, index: int) -> npt.NDArray[np.uint32]:
        """Wait for all submitted work, and return the contents of the buffer `index` as 32-bit words."""
        return self._device.download(self.buffers[index], np.uint32, "shader")

    def close(self) -> None:
        """Free the buffers. All submitted work must be done."""
        for buffer in self.buffers:
            buffer.destroy()


def open_checked(selector: str | None = None, require_hardware: bool = False) -> GpuDevice:
    """Return the device of an adapter, shared by the process; the first call opens it and tests that long loops finish.

    Raises NoAdapterError, or DeviceError if the adapter cuts loops short, which would silently give wrong results.
    """
    adapter = select_adapter(selector, require_hardware)
    with _OPENING:
        if adapter.index not in _OPENED:
            device = GpuDevice(adapter)
            if not runs_long_loops(device):
                raise DeviceError(f"{adapter.name} cannot be used: {CUTS_LOOPS}.")
            _OPENED[adapter.index] = device
        return _OPENED[adapter.index]


def run_probe(device: GpuDevice, name: str, words: Words) -> Words:
    """Dispatch `shaders/selftest/<name>.wgsl` once on a buffer with `words`, and return the buffer's new contents."""
    shader = AnyShader(device, load_source(f"selftest/{name}"), [words], uniforms=0)
    shader.run([0], (1, 1))
    answer = shader.read(0)
    shader.close()
    return answer


def runs_long_loops(device: GpuDevice) -> bool:
    """Return whether the device completes two loops of 40,000 iterations in one invocation."""
    # Together 80,000 iterations, more than the 65,535 at which such drivers stop. The count comes from the host: from a
    # constant, a compiler could compute the sum itself.
    words = run_probe(device, "loop_budget", np.array([0, LOOP_TRIPS, 0], dtype=np.uint32))
    return int(words[0]) == LOOP_TRIPS


def sees_not_finite(device: GpuDevice) -> bool:
    """Return whether the device distinguishes NaNs and infinities from finite numbers, including extreme ones."""
    # Compilers that assume that there is no NaN turn `x != x` into false.
    values = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -1.0, 3.4028235e38, 1.1754944e-38], dtype=np.float32)
    return bool((run_probe(device, "not_finite", values.view(np.uint32)) == np.isfinite(values)).all())


def keeps_workgroup_memory(device: GpuDevice) -> bool:
    """Return whether invocations read what other invocations wrote to all 16 KiB of workgroup memory."""
    return not run_probe(device, "workgroup_memory", np.zeros(64, dtype=np.uint32)).any()
