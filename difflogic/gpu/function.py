"""Differentiable function of a circuit on a GPU adapter."""

from collections.abc import Sequence
from typing import Any, TypeGuard

import numpy as np

from difflogic.engine.control import EPOCH, WORDS
from difflogic.engine.events import UNITS, Hardening
from difflogic.engine.function import ArrayStore, CircuitFunction
from difflogic.engine.shape import Array, Hyper
from difflogic.errors import LimitError
from difflogic.gpu.arrays import GpuArray, GpuArrays
from difflogic.gpu.device import GpuDevice
from difflogic.gpu.launch import LaunchConfig
from difflogic.gpu.plan import CHUNK, Plan
from difflogic.gpu.planner import make_plan, open_within_memory
from difflogic.gpu.submit import Dispatch
from difflogic.gpu.wiring import wired
from difflogic.gpu.workspace import Workspace, from_chunks, to_chunks
from difflogic.model.circuit import Circuit
from difflogic.model.layout import flat_layout

MOST_UNEVEN = 4096
"""Maximum number of cells that the device pads to complete chunks, by a matrix product; more go through the host."""


class GpuFunction(CircuitFunction):
    """GPU implementation of `difflogic.engine.function.CircuitFunction`."""

    def __init__(
        self,
        device: GpuDevice,
        launch: LaunchConfig | None,
        circuit: Circuit,
        grid: Sequence[int],
        steps: int,
        hard: bool,
        every_state: bool,
    ) -> None:
        super().__init__(circuit, grid, steps, hard, every_state)
        self._device = device
        self.selector = f"gpu:{device.adapter.index}"
        self._padding: GpuArray | None = None
        work = Plan(tuple(wired([flat_layout(circuit)])), self._shape, asynchronous=False, given=True)
        plan = make_plan(device.adapter, device.limits, work, launch)
        hardening = Hardening(peak=UNITS)
        self._work = open_within_memory(
            device, plan, lambda plan: Workspace(device, plan, Hyper(), hardening=hardening)
        )
        if every_state and self._work.plan.checkpoint_every > 1:
            self._work.close()
            raise LimitError(
                f"The states of {steps} steps do not fit into the memory of {device.adapter.name}: request only the "
                "last state, or use a smaller grid or batch."
            )
        control = np.zeros(WORDS, dtype=np.uint32)
        control[EPOCH] = 1  # the epoch in which all gates are hard
        self._work.upload("control", control, "state")
        one_hot = [self._work.dispatch("harden", {"coefficients": self._work.buffers["one_hot"]})] if hard else []
        self._prepared = [*self._work.coefficients, *one_hot]
        """Dispatches that compute the gates' coefficients from the logits."""
        self._update()

    def _update(self) -> None:
        work = self._work
        work.upload("logits", self._logits, "state")
        work.submit(self._prepared)

    @property
    def _forth(self) -> list[Dispatch]:
        # For inputs 0 and 1 the arithmetic of a hard gate has integer results, and is exact.
        return self._work.forward_one_hot if self.hard else self._work.forward

    @property
    def _back(self) -> list[Dispatch]:
        # A hard forward pass stores states and nodes of the hard circuit, so the soft forward pass runs first.
        return [*(self._work.forward if self.hard else []), *self._work.pull_back]

    def _forward(self, x: Array) -> Array:
        work = self._work
        work.upload(work.state(0), to_chunks(x, work.plan.chunks), "states")
        work.submit(self._forth)
        first = 1 if self.every_state else self.steps
        return np.stack([self._cells(work.state(step), work.plan.outputs) for step in range(first, self.steps + 1)])

    def _backward(self, d_y: Array) -> tuple[Array, Array]:
        work = self._work
        adjoints, last = to_chunks(d_y, work.plan.chunks), work.d_patches(self.steps)
        if work.plan.perceives:
            work.upload("d_judged", adjoints, "states")
            self._device.clear(last)
        else:
            work.upload(last, adjoints, "states")
        work.submit(self._back)
        gradients = work.download("gradients", np.float32, "gradients").reshape(-1, 16)
        return gradients, self._cells(self._d_start, self._shape.channels)

    @property
    def _d_start(self) -> Any:
        return self._work.buffers.get("d_start", self._work.d_patches(0))

    def forward_arrays(self, arrays: ArrayStore, x: Any, logits: Any) -> Any:
        if not self._stays(arrays):
            return super().forward_arrays(arrays, x, logits)
        work, self._last, self._seen = self._work, (x, logits), False
        # The host does not know these logits. NaN differs from all logits, so that the next `update` uploads again.
        self._logits.fill(np.nan)
        arrays.copy_to(work.buffers["logits"], logits)
        arrays.copy_to(work.state(0), self._chunked(arrays, x))
        arrays.run([*self._prepared, *self._forth], work)
        return self._unchunked(arrays, work.state(self.steps), work.plan.outputs)

    def backward_arrays(self, arrays: ArrayStore, x: Any, logits: Any, d_y: Any) -> tuple[Any, Any]:
        if not self._stays(arrays):
            return super().backward_arrays(arrays, x, logits, d_y)
        if [*map(id, self._last)] != [id(x), id(logits)]:
            self.forward_arrays(arrays, x, logits)
        work, adjoints = self._work, self._chunked(arrays, d_y)
        last = work.d_patches(self.steps)
        if work.plan.perceives:
            arrays.copy_to(work.buffers["d_judged"], adjoints)
            arrays.copy_to(last, arrays.expand((last.size // 4,), arrays.constant(0.0, np.float32)))
        else:
            arrays.copy_to(last, adjoints)
        arrays.run(self._back, work)
        gradients = arrays.copy_of(work.buffers["gradients"], (self._circuit.parameters, 16), (16, 1))
        return gradients, self._unchunked(arrays, self._d_start, self._shape.channels)

    def _stays(self, arrays: ArrayStore) -> TypeGuard[GpuArrays]:
        """Return whether this function can use arrays of the store `arrays` without copying them to the host."""
        fits = self._shape.cells % CHUNK == 0 or self._shape.cells <= MOST_UNEVEN
        return isinstance(arrays, GpuArrays) and arrays.device is self._device and fits and not self.every_state

    def _chunked(self, arrays: GpuArrays, x: GpuArray) -> GpuArray:
        """Rearrange `x` from `[*grid, C]` to chunks of 16 cells, `[chunks, C, 16]`, padding with zeros."""
        cells, channels, chunks = self._shape.cells, x.shape[-1], self._work.plan.chunks
        rows = arrays.reshape((cells, channels), x)
        if cells < chunks * CHUNK:
            # Only a matrix product can pad an array: the matrix has a row of zeros for each padding cell.
            if self._padding is None:
                self._padding = arrays.put(np.eye(chunks * CHUNK, cells, dtype=np.float32))
            rows = arrays.matmul(self._padding, rows)
        return arrays.transpose((0, 2, 1), arrays.reshape((chunks, CHUNK, channels), rows))

    def _unchunked(self, arrays: GpuArrays, buffer: Any, channels: int) -> GpuArray:
        """Copy the chunks `[chunks, C, 16]` in `buffer` to a new array `[*grid, C]`, without the padding."""
        shape = self._work.plan.chunks, CHUNK, channels
        y = arrays.copy_of(buffer, shape, (CHUNK * channels, 1, CHUNK))
        return arrays.reshape((*self.grid, channels), y)

    def _cells(self, buffer: object, channels: int) -> Array:
        """Download the chunks in `buffer` as an array `[cells, channels]`."""
        chunks = self._work.plan.chunks
        values = self._device.download(buffer, np.float32, "states", size=chunks * channels * 64)
        return from_chunks(values.reshape(chunks, channels, 16), self._shape.cells)

    def close(self) -> None:
        super().close()
        self._device.wait()
        self._work.close()
