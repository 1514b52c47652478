"""Workspace in the layout of the references: arrays `[M, ...]` with cells last and no padding."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic.engine.events import NO_HARDENING, Hardening
from difflogic.engine.job import Job, TrainState
from difflogic.engine.shape import Hyper, Shape
from difflogic.gpu.device import DeviceVerbs, GpuDevice
from difflogic.gpu.engine import GpuEngine
from difflogic.gpu.launch import HARDWARE, SOFTWARE, LaunchConfig
from difflogic.gpu.model import GpuModel
from difflogic.gpu.plan import BatchSource, Plan
from difflogic.gpu.planner import plan_for
from difflogic.gpu.submit import Dispatch
from difflogic.gpu.wiring import wired
from difflogic.gpu.workspace import Workspace, from_chunks, to_chunks
from difflogic.model.circuit import Circuit
from difflogic.model.layout import flat_layout
from tests.jobs import Outcome, train

PAIRED = LaunchConfig(64, 1, split_chunks=True, quarters=2)
"""The schedule of many chunks, whose workgroups take two quarters of one."""

LAUNCHES = tuple(dict.fromkeys((*SOFTWARE, LaunchConfig(16, 4), *HARDWARE, PAIRED)))
"""Schedules that a plan may choose, and one where four chunks share a workgroup and have four workers each."""

SAMPLE = (SOFTWARE[0], SOFTWARE[1], HARDWARE[-1])
"""Schedules that are tried first: each costs a software adapter seconds of compiling."""

RECOMPUTING = (
    SOFTWARE[0].with_memory(store_activations=False),
    SOFTWARE[1].with_memory(store_activations=False, checkpoint_every=2),
    PAIRED.with_memory(store_activations=False, checkpoint_every=2),
)
"""Schedules whose backward pass computes the nodes again, with and without barriers, from all states or every 2nd."""

POISON = np.uint32(0x7FC00000)
"""The bits of NaN."""


@dataclass
class Rig:
    """M circuits of one shape on the device. Every buffer starts as NaN, which shows what is read too early."""

    device: GpuDevice
    circuits: Sequence[Circuit]
    shape: Shape
    launch: LaunchConfig = SOFTWARE[0]
    hyper: Hyper = field(default_factory=Hyper)
    fire_rate: float = 1.0
    hardening: Hardening = NO_HARDENING
    probes: int = 0
    hard_batch: int = 0
    batch_source: BatchSource = field(default_factory=BatchSource)
    given: bool = False

    def __post_init__(self) -> None:
        self.layouts = [flat_layout(circuit) for circuit in self.circuits]
        sizes = (self.shape, self.launch, self.probes, self.hard_batch)
        self.plan = Plan(tuple(wired(self.layouts)), *sizes, batch_source=self.batch_source, given=self.given)
        self.work = Workspace(self.device, self.plan, self.hyper, self.fire_rate, self.hardening)
        given = {"wires", "edges", "shape", "hard_shape", "at", "mark"}
        single = (buffer for name, buffer in self.work.buffers.items() if name not in given)
        for buffer in (*single, *(each for buffers in self.work.several.values() for each in buffers)):
            self.put(buffer, np.full(buffer.size // 4, POISON))

    @property
    def hard_shape(self) -> Shape:
        """The shape whose batch counts groups of 32 samples."""
        return replace(self.shape, batch=self.plan.groups)

    def put(self, buffer: str | Any, array: npt.ArrayLike) -> None:
        buffer = self.work.buffers[buffer] if isinstance(buffer, str) else buffer
        self.device.queue.write_buffer(buffer, 0, np.ascontiguousarray(array))

    def put_cells(self, buffer: str | Any, array: np.ndarray) -> None:
        """`[M, ..., rows, cells]`; the cells that fill up the last chunks are 0."""
        self.put(buffer, to_chunks(array.swapaxes(-1, -2), self._chunks(buffer)))

    def get(self, buffer: str | Any, *shape: int, dtype: npt.DTypeLike = np.float32) -> np.ndarray:
        buffer = self.work.buffers[buffer] if isinstance(buffer, str) else buffer
        words = np.frombuffer(self.device.queue.read_buffer(buffer), dtype=dtype)
        return words.reshape(self.plan.models, *shape)

    def get_cells(self, buffer: str | Any, *shape: int, dtype: npt.DTypeLike = np.float32) -> np.ndarray:
        """A buffer as `[M, *shape]`, of which the last two axes are rows and cells."""
        *lead, rows, cells = shape
        chunked = self.get(buffer, *lead, self._chunks(buffer), rows, 16, dtype=dtype)
        return from_chunks(chunked, cells).swapaxes(-1, -2)

    def put_kept(self, step: int, nodes: np.ndarray) -> None:
        """Return the nodes of a step that the forward pass stored, `[M, nodes, cells]`."""
        self.put(self.work.several["kept"][step], self._tiled(nodes))

    def _tiled(self, nodes: np.ndarray) -> np.ndarray:
        """`[M, nodes, cells]` as it lies there: `[M, tiles, nodes, lanes, 16]`; split, `[M, chunks, 4, nodes, 4]`."""
        chunked = to_chunks(nodes.swapaxes(-1, -2), self.plan.chunks)  # [M, chunks, nodes, 16]
        if self.launch.split_chunks:
            return np.ascontiguousarray(chunked.reshape(*chunked.shape[:-1], 4, 4).swapaxes(2, 3))
        tiled = chunked.reshape(len(nodes), -1, self.launch.chunks_per_workgroup, *chunked.shape[2:])
        return np.ascontiguousarray(tiled.swapaxes(2, 3))

    def get_kept(self, step: int) -> np.ndarray:
        """The same, as the backward pass sees it."""
        plan, lanes = self.plan, self.launch.chunks_per_workgroup
        values = np.frombuffer(self.device.queue.read_buffer(self.work.several["kept"][step]), dtype=np.float32)
        if self.launch.split_chunks:
            values = values.reshape(plan.models, plan.chunks, 4, plan.nodes, 4).swapaxes(2, 3).copy()
        tiled = values.reshape(plan.models, -1, plan.nodes, lanes, 16).swapaxes(2, 3)
        chunked = np.ascontiguousarray(tiled).reshape(plan.models, plan.chunks, plan.nodes, 16)
        return from_chunks(chunked, self.shape.cells).swapaxes(-1, -2)

    def nodes_of(self, model: int, values: np.ndarray) -> np.ndarray:
        """Return the values that a kernel stores, of all `[N, cells]`."""
        patches, inner = self.layouts[model].patch_nodes, self.plan.wirings[model].inner
        return np.concatenate([values[:patches], values[patches + inner :]])

    def run(self, *dispatches: Dispatch) -> None:
        self.work.submit(dispatches)

    def _chunks(self, buffer: str | Any) -> int:
        return self.plan.hard_chunks if buffer in self.work.several.get("words", ()) else self.plan.chunks


@contextmanager
def rig(device: GpuDevice, circuits: Sequence[Circuit], shape: Shape, **options: Any) -> Iterator[Rig]:
    """A Rig whose memory is freed at the end."""
    made = Rig(device, circuits, shape, **options)
    yield made
    made.get("control", 8, dtype=np.uint32)  # waits for all work
    made.work.close()


def assert_matches_reference(
    got: np.ndarray, reference: Callable[[int, np.ndarray], None], before: np.ndarray | None = None
) -> None:
    """Assert that each model's buffer is, bit by bit, the reference's result from the content `before`."""
    for m, each in enumerate(got):
        expected = np.empty_like(each) if before is None else before[m].copy()
        reference(m, expected)
        np.testing.assert_array_equal(each, expected)


def on_device(
    device: DeviceVerbs, jobs: Sequence[Job], states: Sequence[TrainState], launch: LaunchConfig | None = None
) -> GpuModel:
    """Open models in one group."""
    return GpuModel.from_cpu(device, jobs, states, plan_for(device, jobs, launch))


def train_alone(
    device: GpuDevice, job: Job, state: TrainState, epochs: int, launch: LaunchConfig | None = None
) -> Outcome:
    """Results of one model."""
    return train(GpuEngine(device, launch), job, state, epochs)
