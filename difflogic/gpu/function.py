"""A circuit as a differentiable function, on a GPU adapter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from difflogic.core import gates
from difflogic.engine.function import CircuitFunction
from difflogic.engine.shape import Array, Hyper
from difflogic.errors import LimitError
from difflogic.gpu.device import Device
from difflogic.gpu.launch import LaunchConfig
from difflogic.gpu.plan import Plan
from difflogic.gpu.planner import make_plan
from difflogic.gpu.wiring import wired
from difflogic.gpu.workspace import Workspace, from_chunks, to_chunks
from difflogic.model.circuit import Circuit
from difflogic.model.layout import flat_layout


class GpuFunction(CircuitFunction):
    """Implements `difflogic.engine.function.CircuitFunction`."""

    def __init__(
        self,
        device: Device,
        launch: LaunchConfig | None,
        circuit: Circuit,
        grid: Sequence[int],
        steps: int,
        hard: bool,
        every_state: bool,
    ) -> None:
        super().__init__(circuit, grid, steps, hard, every_state)
        self.selector = f"gpu:{device.adapter.index}"
        work = Plan(tuple(wired([flat_layout(circuit)])), self._shape, asynchronous=False, given=True)
        plan = make_plan(device.adapter, device.limits, work, launch)
        if every_state and plan.checkpoint_every > 1:
            raise LimitError(
                f"The states of {steps} steps do not fit on {device.adapter.name} all at once: ask for the last state "
                "alone, or use a smaller grid or batch."
            )
        self._work = Workspace(device, plan, Hyper())
        self._update()

    def _update(self) -> None:
        work = self._work
        work.upload("logits", self._logits, "state")
        work.submit(work.coefficients)
        if self.hard:
            work.upload("one_hot", gates.TABLE[self._logits.argmax(axis=1)].astype(np.float32), "state")

    def _forward(self, x: Array) -> Array:
        work = self._work
        work.upload(work.state(0), to_chunks(x, work.plan.chunks), "states")
        # On 0 and 1 the arithmetic of a hard gate is of whole numbers, and exact.
        work.submit(work.forward_one_hot if self.hard else work.forward)
        first = 1 if self.every_state else self.steps
        return np.stack([self._cells(work.state(step), work.plan.outputs) for step in range(first, self.steps + 1)])

    def _backward(self, d_y: Array) -> tuple[Array, Array]:
        work = self._work
        adjoints, last = to_chunks(d_y, work.plan.chunks), work.d_rows(self.steps)
        if work.plan.perceives:
            work.upload("d_judged", adjoints, "states")
            work.device.clear(last)
        else:
            work.upload(last, adjoints, "states")
        # A hard pass has left the states and nodes of the hard circuit.
        work.submit([*(work.forward if self.hard else []), *work.pull_back])
        gradients = work.download("gradients", np.float32, "gradients").reshape(-1, 16)
        start = work.buffers["d_start"] if work.plan.perceives else work.d_rows(0)
        return gradients, self._cells(start, self._shape.channels)

    def _cells(self, buffer: object, channels: int) -> Array:
        """`[cells, channels]` of chunks."""
        chunks = self._work.plan.chunks
        values = self._work.device.download(buffer, np.float32, "states", size=chunks * channels * 64)
        return from_chunks(values.reshape(chunks, channels, 16), self._shape.cells)

    def close(self) -> None:
        super().close()
        self._work.device.wait()
        self._work.close()
