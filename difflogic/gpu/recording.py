"""Record all GPU commands of a training as data, which another program can run.

Dispatch lists do not change from epoch to epoch, so buffers, pipelines, bind groups and three lists describe the
complete run. `GpuModel` and `Workspace` create them with the methods of `DeviceVerbs`, on a device or a recording.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from difflogic.engine.job import Job, TrainState
from difflogic.errors import UsageError
from difflogic.gpu.adapter import Adapter
from difflogic.gpu.model import GpuModel
from difflogic.gpu.plan import Plan
from difflogic.gpu.planner import plan_for
from difflogic.gpu.shaders import Sizes, Source
from difflogic.gpu.submit import Dispatch

DEFAULT_LIMITS = {
    "max-storage-buffers-per-shader-stage": 8,
    "max-compute-invocations-per-workgroup": 256,
    "max-compute-workgroup-size-x": 256,
    "max-compute-workgroup-storage-size": 16384,
    "max-compute-workgroups-per-dimension": 65535,
    "max-storage-buffer-binding-size": 128 << 20,
    "max-buffer-size": 256 << 20,
    "max-uniform-buffer-binding-size": 65536,
}
"""Default limits of a WebGPU device."""


@dataclass(eq=False)
class RecordedBuffer:
    """Recorded request to create a buffer."""

    name: str
    size: int
    usage: str
    """Kind of buffer: `storage`, `uniform` or `staging`."""
    contents: bytearray | None = None
    """Initial contents, or None for zeros."""


class RecordedPipeline(NamedTuple):
    """Recorded request to create a pipeline: a kernel and its `override` constants."""

    kernel: str
    constants: tuple[tuple[str, int], ...]


class BoundRange(NamedTuple):
    """Part of a buffer that a bind group binds."""

    buffer: RecordedBuffer
    offset: int
    size: int


class RecordedGroup(NamedTuple):
    """Recorded request to create a bind group, in the order of the kernel's bindings."""

    kernel: str
    bound: tuple[BoundRange, ...]


@dataclass(eq=False)
class RecordingDevice:
    """Implementation of `DeviceVerbs` that records all requests and executes none."""

    software: bool
    """True if the run is planned for a software adapter."""
    limits: dict[str, int] = field(default_factory=lambda: dict(DEFAULT_LIMITS))
    buffers: list[RecordedBuffer] = field(default_factory=list)
    pipelines: list[RecordedPipeline] = field(default_factory=list)
    groups: list[RecordedGroup] = field(default_factory=list)

    @property
    def adapter(self) -> Adapter:
        """Dummy adapter for the planner, which uses its name and type."""
        kind = "CPU" if self.software else "Unknown"
        return Adapter(0, "a recording", kind, "", "", "", dict(self.limits), (), None)

    def buffer(self, name: str, size: int, uniform: bool = False) -> RecordedBuffer:
        return self._made(RecordedBuffer(name, size, "uniform" if uniform else "storage"))

    def staging(self, name: str, size: int) -> RecordedBuffer:
        return self._made(RecordedBuffer(name, size, "staging"))

    def _made(self, buffer: RecordedBuffer) -> RecordedBuffer:
        self.buffers.append(buffer)
        return buffer

    def upload(self, buffer: RecordedBuffer, data: npt.NDArray[Any] | bytes, purpose: str, offset: int = 0) -> None:
        payload = data if isinstance(data, bytes) else np.ascontiguousarray(data).tobytes()
        if buffer.contents is None:
            buffer.contents = bytearray(buffer.size)
        buffer.contents[offset : offset + len(payload)] = payload

    def pipeline(self, kernel: str, constants: dict[str, int], sizes: Sizes = ()) -> RecordedPipeline:
        made = RecordedPipeline(kernel, tuple(constants.items()))
        if made not in self.pipelines:
            self.pipelines.append(made)
        return made

    def bind(self, source: Source, buffers: Mapping[str, Any]) -> RecordedGroup:
        bound = []
        for binding in source.bindings:
            given = buffers[binding.name]
            bound.append(BoundRange(*given) if isinstance(given, tuple) else BoundRange(given, 0, given.size))
        group = RecordedGroup(source.name, tuple(bound))
        self.groups.append(group)
        return group


class RecordedRun(NamedTuple):
    """Recorded training: buffers, pipelines and bind groups in `device`, and three lists of dispatches."""

    device: RecordingDevice
    plan: Plan
    init: list[Dispatch]
    """Dispatches to run once, after the logits are uploaded."""
    train_step: list[Dispatch]
    """Dispatches to run in every epoch."""
    evaluation: list[Dispatch]
    """Dispatches that count mismatches of the hard circuit."""


def record(jobs: Sequence[Job], states: Sequence[TrainState], software: bool) -> RecordedRun:
    """Record a training for a `software` or hardware adapter with DEFAULT_LIMITS. Raises LimitError or UsageError."""
    if jobs[0].circuit.candidates > 1:
        raise UsageError("In-browser training does not support learned wiring: set model.candidates to 1.")
    device = RecordingDevice(software)
    model = GpuModel(device, jobs, plan_for(device, jobs))
    model.fill(states)
    workspace = model.workspace
    return RecordedRun(device, model.plan, workspace.coefficients, model.train_step, workspace.evaluation)
