"""Buffers, bind groups and dispatch lists of one plan: made once, used for every step after that."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from difflogic.gpu.device import Device
from difflogic.gpu.kernels import TILED
from difflogic.gpu.loops import LINEAR_WG
from difflogic.gpu.plan import CHUNK, Plan, Schedule
from difflogic.gpu.uniforms import AT_STRIDE, at_bytes, shape_bytes
from difflogic.layout import Layout
from difflogic.shape import Hyper

Array = npt.NDArray[Any]


class Dispatch(NamedTuple):
    """One line of a compute pass."""

    kernel: str
    pipeline: Any
    bind_group: Any
    x: int
    y: int


_OWN = ("device", "plan", "buffers", "_nodes", "_at")
"""Attributes of a workspace that are not derived from its schedule."""


class Workspace:
    """Device memory for a plan, and the dispatches that work on it."""

    def __init__(self, device: Device, plan: Plan, hyper: Hyper, fire_rate: float = 1.0) -> None:
        self.device, self.plan = device, plan
        sizes = plan.buffer_bytes()
        self.buffers: dict[str, Any] = {name: device.buffer(name, size) for name, size in sizes.items()}
        more = (device.buffer("nodes", sizes["nodes"]) for _ in range(1, plan.node_buffers))
        self._nodes = [self.buffers["nodes"], *more]
        self._uniforms(hyper, fire_rate)
        self._upload_wiring()

    def _uniforms(self, hyper: Hyper, fire_rate: float) -> None:
        device, plan = self.device, self.plan
        for name, hard in (("shape", False), ("hard_shape", True)):
            data = shape_bytes(plan, hyper, fire_rate, hard)
            self.buffers[name] = device.buffer(name, len(data), uniform=True)
            device.upload(self.buffers[name], data, "shape")
        steps = at_bytes(plan.shape.steps)
        at = device.buffer("at", len(steps), uniform=True)
        device.upload(at, steps, "shape")
        self._at = [(at, AT_STRIDE * step, 16) for step in range(plan.shape.steps)]

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
        """T CA steps of the soft circuit, from states[0]."""
        return [
            self._dispatch("gate_forward", self.plan.forward_groups, at=self._at[step], nodes=self._nodes_of(step))
            for step in range(self.plan.shape.steps)
        ]

    @cached_property
    def backward(self) -> list[Dispatch]:
        """Loss, T steps backward, gradients of the logits, and whether they count."""
        steps = reversed(range(self.plan.shape.steps))
        return [
            self._dispatch("loss", min(self.plan.chunks, 65535)),
            *(
                self._dispatch(
                    "gate_backward", self.plan.backward_groups, at=self._at[step], nodes=self._nodes_of(step)
                )
                for step in steps
            ),
            self._linear("gradients", self.plan.layout.gates * 8),
            self._dispatch("commit", 1),
        ]

    @cached_property
    def update(self) -> list[Dispatch]:
        return [self._linear("adamw", self.plan.layout.gates)]

    @cached_property
    def seed(self) -> list[Dispatch]:
        """Fresh start grids from the control block's key."""
        return [self._linear("seed_grid", -(-self.plan.shape.cells * self.plan.shape.channels // 2))]

    @cached_property
    def fire(self) -> list[Dispatch]:
        """Fresh fire masks from the control block's key."""
        half = -(-self.plan.shape.cells_per_grid // 2)
        return [self._linear("fire_mask", half * self.plan.shape.steps)]

    @cached_property
    def hard_forward(self) -> list[Dispatch]:
        """T CA steps of the hard circuit, from words[0]."""
        names = {"shape": "hard_shape", "masks": "hard_masks"}
        return [
            self._dispatch("hard_forward", self.plan.hard_groups, names, at=self._at[step])
            for step in range(self.plan.shape.steps)
        ]

    @cached_property
    def evaluation(self) -> list[Dispatch]:
        """The training batch joins the probes, T hard steps, and the count of wrong values."""
        shape = self.plan.shape
        return [
            self._linear("pack", self.plan.groups * shape.cells_per_grid * shape.channels),
            *self.hard_forward,
            self._linear(
                "hard_loss", self.plan.groups * shape.cells_per_grid * shape.loss_channels, {"shape": "hard_shape"}
            ),
        ]

    def _nodes_of(self, step: int) -> Any:
        return self._nodes[step % len(self._nodes)]

    def _linear(self, kernel: str, items: int, names: dict[str, str] | None = None) -> Dispatch:
        return self._dispatch(kernel, min(-(-items // LINEAR_WG), 65535), names)

    def _dispatch(self, kernel: str, x: int, names: dict[str, str] | None = None, **bound: Any) -> Dispatch:
        """`names` maps a binding to a buffer of another name, `bound` to a buffer itself."""
        renamed = {binding: self.buffers[name] for binding, name in (names or {}).items()}
        group = self.device.bind(kernel, self.buffers | renamed | bound)
        y = 1 if kernel in TILED else self.plan.models
        return Dispatch(kernel, self.device.pipeline(kernel, self.plan.schedule), group, x, y)

    def under(self, schedule: Schedule) -> Workspace:
        """The same memory under another schedule, of as many lanes: dispatches with other pipelines."""
        assert (schedule.lanes, schedule.keep) == (self.plan.schedule.lanes, self.plan.schedule.keep)
        other = copy.copy(self)
        other.__dict__ = {name: value for name, value in vars(self).items() if name in _OWN}
        other.plan = replace(self.plan, schedule=schedule)
        return other

    # use ----------------------------------------------------------------------------------------------

    def encode(self, dispatches: Sequence[Dispatch], repeat: int = 1) -> Any:
        """A command encoder with all dispatches in one pass."""
        encoder = self.device.handle.create_command_encoder()
        compute_pass = encoder.begin_compute_pass()
        current = None
        for _ in range(repeat):
            for dispatch in dispatches:
                if dispatch.pipeline is not current:
                    compute_pass.set_pipeline(dispatch.pipeline)
                    current = dispatch.pipeline
                compute_pass.set_bind_group(0, dispatch.bind_group)
                compute_pass.dispatch_workgroups(dispatch.x, dispatch.y)
        compute_pass.end()
        return encoder

    def submit(self, dispatches: Sequence[Dispatch]) -> None:
        self.device.queue.submit([self.encode(dispatches).finish()])

    def upload(self, name: str, data: Array, purpose: str) -> None:
        """Fill the beginning of a buffer."""
        self.device.upload(self.buffers[name], data, purpose)

    def download(self, name: str, dtype: npt.DTypeLike, purpose: str) -> Array:
        return self.device.download(self.buffers[name], dtype, purpose)

    def close(self) -> None:
        """Free the memory. Only after everything submitted has been waited for: wgpu aborts otherwise."""
        for buffer in {id(b): b for b in (*self.buffers.values(), *self._nodes)}.values():
            buffer.destroy()


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
