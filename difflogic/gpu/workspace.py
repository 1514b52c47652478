"""Buffers, bind groups and dispatch lists of one plan: made once, used for every step after that."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic.gpu.device import Device
from difflogic.gpu.encoding import Dispatch, encode
from difflogic.gpu.kernels import TILED
from difflogic.gpu.loops import LINEAR_WG
from difflogic.gpu.pacing import Pacer
from difflogic.gpu.plan import CHUNK, Plan, Schedule
from difflogic.gpu.uniforms import AT_BYTES, AT_STRIDE, at_bytes, shape_bytes
from difflogic.hardening import NO_HARDENING, Hardening
from difflogic.layout import Layout
from difflogic.shape import Hyper

Array = npt.NDArray[Any]


_OWN = ("device", "plan", "buffers", "several", "pacer", "_at")
"""Attributes of a workspace that are not derived from its schedule."""


class Workspace:
    """Device memory for a plan, and the dispatches that work on it."""

    def __init__(
        self, device: Device, plan: Plan, hyper: Hyper, fire_rate: float = 1.0, hardening: Hardening = NO_HARDENING
    ) -> None:
        self.device, self.plan = device, plan
        sizes, counts = plan.buffer_bytes(), plan.buffer_counts()
        self.buffers: dict[str, Any] = {
            name: device.buffer(name, size) for name, size in sizes.items() if name not in counts
        }
        self.several: dict[str, list[Any]] = {
            name: [device.buffer(name, sizes[name]) for _ in range(count)] for name, count in counts.items()
        }
        self.pacer = Pacer(device, self.buffers["coefficients"], plan.most_work)
        self._uniforms(hyper, fire_rate, hardening)
        self._upload_wiring()

    def _uniforms(self, hyper: Hyper, fire_rate: float, hardening: Hardening) -> None:
        device, plan = self.device, self.plan
        for name, hard in (("shape", False), ("hard_shape", True)):
            data = shape_bytes(plan, hyper, fire_rate, hardening, hard)
            self.buffers[name] = device.buffer(name, len(data), uniform=True)
            device.upload(self.buffers[name], data, "shape")
        rows = [
            (kernel, step, span) for kernel in TILED for step in range(plan.shape.steps) for span in plan.spans(kernel)
        ]
        blocks = at_bytes([(step, *span) for _, step, span in rows])
        self.buffers["at"] = device.buffer("at", len(blocks), uniform=True)
        device.upload(self.buffers["at"], blocks, "shape")
        places = ((self.buffers["at"], AT_STRIDE * row, AT_BYTES) for row in range(len(rows)))
        self._at = dict(zip(rows, places, strict=True))

    def _upload_wiring(self) -> None:
        layouts = self.plan.layouts
        self.device.upload(self.buffers["wires"], np.stack([layout.wires for layout in layouts]), "circuit")
        if self.plan.training:
            edges = np.stack([self._edges(layout) for layout in layouts])
            self.device.upload(self.buffers["edges"], edges, "circuit")

    def _edges(self, layout: Layout) -> Array:
        """The `Edge` of every node, instances first; the last level's slots come last."""
        edges = np.zeros((layout.nodes, 8), dtype=np.uint32)
        edges[: layout.instances, 0:2] = layout.wires
        edges[: layout.instances, 2:4] = layout.slots
        edges[: layout.instances, 4:6] = layout.fanout[layout.patch_nodes :]
        edges[layout.instances :, 4:6] = layout.fanout[: layout.patch_nodes]
        outputs = self.plan.slots - layout.channels + np.arange(layout.channels)
        edges[layout.instances - layout.channels : layout.instances, 4] = outputs
        edges[layout.instances - layout.channels : layout.instances, 5] = outputs + 1
        return edges

    # dispatch lists -----------------------------------------------------------------------------------

    @cached_property
    def coefficients(self) -> list[Dispatch]:
        """logits -> coefficients and hard gates."""
        return [self._linear("coefficients", self.plan.layout.gates)]

    @cached_property
    def forward(self) -> list[Dispatch]:
        """T CA steps of the soft circuit, from the first state."""
        return [dispatch for step in range(self.plan.shape.steps) for dispatch in self.forward_step(step)]

    def forward_step(self, step: int) -> list[Dispatch]:
        """One CA step of the soft circuit."""
        plan, scratch = self.plan, self.buffers["scratch"]
        bound = {
            "state": self.state(step),
            "next_state": self.state(step + 1),
            "values": self.several["kept"][step] if plan.keeps_as_is else scratch,
            "kept": self.several["kept"][step] if plan.schedule.keep and plan.shape.half else self.buffers["nothing"],
        }
        return self._tiled("gate_forward", step, bound)

    @cached_property
    def backward(self) -> list[Dispatch]:
        """Loss, T steps backward, gradients of the logits, and whether they count."""
        steps = self.plan.shape.steps
        bound = {"state": self.state(steps), "d_rows": self._d_rows(steps)}
        return [
            self._dispatch("loss", min(self.plan.chunks, 65535), bound),
            *(dispatch for step in reversed(range(steps)) for dispatch in self.backward_step(step)),
            self._linear("gradients", self.plan.layout.gates * 8),
            self._dispatch("commit", 1),
        ]

    def backward_step(self, step: int) -> list[Dispatch]:
        """One CA step backward; before it, the forward steps whose states were not kept, where it needs them first."""
        bound = {
            "kept": self.several["kept"][step] if self.plan.schedule.keep else self.state(step),
            "d_next": self._d_rows(step + 1),
            "values": self.buffers["scratch"],
            "d_rows": self._d_rows(step),
        }
        return [*self._forward_again(step), *self._tiled("gate_backward", step, bound)]

    def _forward_again(self, step: int) -> list[Dispatch]:
        """Where `step` is the last after a kept state: the steps from that state on, but for the last such piece."""
        spacing = self.plan.spacing
        if step % spacing != spacing - 1 or step == self.plan.shape.steps - 1:
            return []
        return [dispatch for again in range(step - spacing + 1, step) for dispatch in self.forward_step(again)]

    @cached_property
    def update(self) -> list[Dispatch]:
        return [self._linear("adamw", self.plan.layout.gates)]

    @cached_property
    def harden(self) -> list[Dispatch]:
        """logits -> coefficients of an epoch with hardened gates."""
        return [self._linear("harden", self.plan.layout.gates)]

    @cached_property
    def seed(self) -> list[Dispatch]:
        """Fresh start grids from the control block's key."""
        pairs = -(-self.plan.shape.cells * self.plan.shape.channels // 2)
        return [self._linear("seed_grid", pairs, {"state": self.state(0)})]

    @cached_property
    def fire(self) -> list[Dispatch]:
        """Fresh fire masks from the control block's key."""
        half = -(-self.plan.shape.cells_per_grid // 2)
        return [self._linear("fire_mask", half * self.plan.shape.steps)]

    @cached_property
    def hard_forward(self) -> list[Dispatch]:
        """T CA steps of the hard circuit, from the first words."""
        return [dispatch for step in range(self.plan.shape.steps) for dispatch in self._hard_step(step)]

    def _hard_step(self, step: int) -> list[Dispatch]:
        bound = {
            "shape": self.buffers["hard_shape"],
            "masks": self.buffers["hard_masks"],
            "words": self.words(step),
            "next_words": self.words(step + 1),
            "hard_nodes": self.buffers["scratch"],
        }
        return self._tiled("hard_forward", step, bound)

    @cached_property
    def evaluation(self) -> list[Dispatch]:
        """The training batch joins the probes, T hard steps, and the count of wrong values."""
        shape = self.plan.shape
        values = self.plan.groups * shape.cells_per_grid
        last = {"shape": self.buffers["hard_shape"], "words": self.words(shape.steps)}
        return [
            self._linear("pack", values * shape.channels, {"state": self.state(0), "words": self.words(0)}),
            *self.hard_forward,
            self._linear("hard_loss", values * shape.loss_channels, last),
        ]

    def state(self, step: int) -> Any:
        """The buffer of a step's soft state."""
        return self.several["states"][self.plan.state_slot(step)]

    def words(self, step: int) -> Any:
        """The buffer of a step's hard state."""
        return self.several["words"][self.plan.word_slot(step)]

    def _d_rows(self, step: int) -> Any:
        """The adjoints of a step's patches: two buffers take turns."""
        return self.several["d_rows"][step % 2]

    def _tiled(self, kernel: str, step: int, bound: dict[str, Any]) -> list[Dispatch]:
        """The dispatches of a fused step."""
        plan = self.plan
        made = []
        for span in plan.spans(kernel):
            groups = min(plan.groups_of(kernel), span.tiles)
            dispatch = self._dispatch(kernel, groups, bound | {"at": self._at[kernel, step, span]})
            made.append(dispatch._replace(work=span.tiles * span.parts * plan.work_of(kernel)))
        return made

    def _linear(self, kernel: str, items: int, bound: dict[str, Any] | None = None) -> Dispatch:
        return self._dispatch(kernel, min(-(-items // LINEAR_WG), 65535), bound)

    def _dispatch(self, kernel: str, x: int, bound: dict[str, Any] | None = None) -> Dispatch:
        """`bound`: the buffers of bindings that have no buffer of their name, or another here."""
        group = self.device.bind(kernel, self.buffers | (bound or {}))
        y = 1 if kernel in TILED else self.plan.models
        return Dispatch(kernel, self.device.pipeline(kernel, self.plan.schedule, self.plan.shape.half), group, x, y)

    def under(self, schedule: Schedule) -> Workspace:
        """The same memory under another schedule, of as many lanes: dispatches with other pipelines."""
        ours = self.plan.schedule
        assert (schedule.lanes, schedule.memory) == (ours.lanes, ours.memory)
        other = copy.copy(self)
        other.__dict__ = {name: value for name, value in vars(self).items() if name in _OWN}
        other.plan = replace(self.plan, schedule=schedule)
        return other

    # use ----------------------------------------------------------------------------------------------

    def submit(self, dispatches: Sequence[Dispatch]) -> None:
        """Queue the work, in several submits where it is long."""
        *before, last = self.pacer.pieces(dispatches)
        self.pacer.submit(before)
        self.device.queue.submit([encode(self.device, last).finish()])

    def upload(self, buffer: str | Any, data: Array, purpose: str) -> None:
        """Fill the beginning of a buffer, given by its name or itself."""
        self.device.upload(self.buffers[buffer] if isinstance(buffer, str) else buffer, data, purpose)

    def download(self, name: str, dtype: npt.DTypeLike, purpose: str) -> Array:
        return self.device.download(self.buffers[name], dtype, purpose)

    def download_all(self, name: str, dtype: npt.DTypeLike, purpose: str) -> Array:
        """Every buffer of a name, one after another."""
        return np.stack([self.device.download(buffer, dtype, purpose) for buffer in self.several[name]])

    def close(self) -> None:
        """Free the memory. Only after everything submitted has been waited for: wgpu aborts otherwise."""
        for buffer in (*self.buffers.values(), *(each for buffers in self.several.values() for each in buffers)):
            buffer.destroy()
        self.pacer.close()


def to_chunks(values: Array, chunks: int) -> Array:
    """`[..., cells, C]` -> `[..., chunks, C, 16]`, the cells past the end 0."""
    *lead, cells, channels = values.shape
    padded = np.zeros((*lead, chunks * CHUNK, channels), dtype=values.dtype)
    padded[..., :cells, :] = values
    return np.ascontiguousarray(padded.reshape(*lead, chunks, CHUNK, channels).swapaxes(-1, -2))


def from_chunks(values: Array, cells: int) -> Array:
    """The inverse of `to_chunks`: `[..., chunks, C, 16]` -> `[..., cells, C]`."""
    *lead, chunks, channels, _ = values.shape
    return np.ascontiguousarray(values.swapaxes(-1, -2).reshape(*lead, chunks * CHUNK, channels)[..., :cells, :])
