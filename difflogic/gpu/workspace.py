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
from difflogic.gpu.trails import SINGLE, Trails
from difflogic.gpu.uniforms import AT_BYTES, AT_STRIDE, MARK_BYTES, at_bytes, mark_bytes, shape_bytes
from difflogic.hardening import NO_HARDENING, Hardening
from difflogic.shape import Hyper

Array = npt.NDArray[Any]


_OWN = ("device", "plan", "buffers", "several", "pacer", "_at", "_marks")
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
        marks = mark_bytes(plan.shape)
        self.buffers["mark"] = device.buffer("mark", len(marks), uniform=True)
        device.upload(self.buffers["mark"], marks, "shape")
        self._marks = [(self.buffers["mark"], AT_STRIDE * step, MARK_BYTES) for step in range(plan.shape.steps + 1)]

    def _upload_wiring(self) -> None:
        self.device.upload(self.buffers["wires"], np.stack([each.wires for each in self.plan.wirings]), "circuit")
        if self.plan.training:
            trails = self.plan.trails
            self.device.upload(self.buffers["place_of"], np.stack([each.places for each in trails]), "circuit")
            self.device.upload(self.buffers["edges"], np.stack([self._edges(each) for each in trails]), "circuit")

    def _edges(self, trails: Trails) -> Array:
        """The `Edge` of every instance, by place, then of every patch node; the last level's slots come last."""
        wiring, layout = trails.wiring, trails.wiring.layout
        fanout = np.zeros((layout.instances + layout.patch_nodes, 2), dtype=np.uint32)
        fanout[wiring.inner : layout.instances] = trails.fanout[layout.patch_nodes :]
        fanout[layout.instances :] = trails.fanout[: layout.patch_nodes]
        outputs = self.plan.slots - layout.channels + np.arange(layout.channels)
        fanout[layout.instances - layout.channels : layout.instances] = np.stack([outputs, outputs + 1], axis=1)
        edges = np.zeros((len(fanout), 8), dtype=np.uint32)
        edges[:, 2], edges[:, 6] = fanout.T
        own = edges[: layout.instances]
        own[:, 4], own[:, 0] = wiring.wires.T
        own[:, 1], own[:, 5] = trails.slots.T
        own[:, 3] = trails.gates | np.where(own[:, 6] == own[:, 2] + 1, np.uint32(SINGLE), np.uint32(0))
        own[:, 7] = np.arange(layout.instances)
        own[:] = own[trails.order]
        return edges

    # dispatch lists -----------------------------------------------------------------------------------

    @cached_property
    def coefficients(self) -> list[Dispatch]:
        """logits -> coefficients and hard gates."""
        return [self._linear("coefficients", self.plan.layout.gates)]

    @cached_property
    def forward(self) -> list[Dispatch]:
        """T CA steps of the soft circuit, from the first state, with earlier losses and damage on the way."""
        steps = range(self.plan.shape.steps)
        made = [self._damage(0)]
        made += [[*self.forward_step(step), *self._judge(step + 1), *self._damage(step + 1)] for step in steps]
        return [dispatch for each in made for dispatch in each]

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

    def _judge(self, step: int) -> list[Dispatch]:
        """The loss of a state, where one is taken there that is not the last."""
        shape = self.plan.shape
        if step not in shape.judged_steps[:-1] or not self.plan.training:
            return []
        return [self._linear("judge", self.plan.chunks, {"state": self.state(step), "mark": self._marks[step]})]

    def _damage(self, step: int) -> list[Dispatch]:
        """The damage of a state, which may have been done before, where there is any."""
        if step not in self.plan.shape.damage_steps:
            return []
        return [self._linear("damage", self._damaged_values, {"state": self.state(step), "mark": self._marks[step]})]

    @property
    def _damaged_values(self) -> int:
        shape = self.plan.shape
        side = min(shape.damage_side, max(shape.height, shape.width))
        return shape.batch * side * side * shape.channels

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
        """One CA step backward, and what happened to its state before it.

        Before it, the forward steps whose states were not kept, where it needs them first.
        """
        bound = {
            "kept": self.several["kept"][step] if self.plan.schedule.keep else self.state(step),
            "d_next": self._d_rows(step + 1),
            "values": self.buffers["scratch"],
            "d_rows": self._d_rows(step),
        }
        fused = [*self._forward_again(step), *self._tiled("gate_backward", step, bound)]
        return [*fused, *(self._d_events(step) if step > 0 else [])]

    def _d_events(self, step: int) -> list[Dispatch]:
        """The adjoints of a state's damage and of its loss."""
        shape, made = self.plan.shape, []
        bound = {"d_rows": self._d_rows(step), "mark": self._marks[step]}
        if step in shape.damage_steps:
            made.append(self._linear("d_damage", self._damaged_values, bound))
        if step in shape.judged_steps:
            made.append(self._linear("d_judge", self.plan.chunks * CHUNK * shape.loss_channels, bound))
        return made

    def _forward_again(self, step: int) -> list[Dispatch]:
        """Where `step` is the last after a kept state: the steps from that state on, but for the last such piece."""
        spacing = self.plan.spacing
        if step % spacing != spacing - 1 or step == self.plan.shape.steps - 1:
            return []
        steps = range(step - spacing + 1, step)
        return [dispatch for again in steps for dispatch in (*self.forward_step(again), *self._damage(again + 1))]

    @cached_property
    def update(self) -> list[Dispatch]:
        """New logits; and the batch goes back into the pool, where it came from one."""
        plan = self.plan
        adamw = self._linear("adamw", plan.layout.gates)
        if not plan.supply.pool:
            return [adamw]
        last = {"state": self.state(plan.shape.steps)}
        return [
            self._dispatch("sample_losses", min(plan.shape.batch, 65535), last),
            adamw,
            self._linear("write_back", plan.shape.batch * plan.grid_words, last),
        ]

    @cached_property
    def harden(self) -> list[Dispatch]:
        """logits -> coefficients of an epoch with hardened gates."""
        return [self._linear("harden", self.plan.layout.gates)]

    @cached_property
    def seed(self) -> list[Dispatch]:
        """Start grids by the control block's key, fresh or from the pool, and a rule's targets."""
        plan, shape, first = self.plan, self.plan.shape, {"state": self.state(0)}
        kernel, items = {
            "random": ("seed_grid", -(-shape.cells * shape.channels // 2)),
            "boards": ("seed_boards", shape.cells),
        }.get(plan.supply.start, ("same_start", shape.cells * shape.channels))
        made = [self._linear(kernel, items, {"state": self.buffers["fresh"]} if plan.supply.pool else first)]
        if plan.supply.pool:
            made.append(self._linear("draw_pool", shape.batch * plan.grid_words, first))
        if plan.supply.ruled:
            made.append(self._linear("rule_target", shape.cells, first))
        return made

    @cached_property
    def corners(self) -> list[Dispatch]:
        """Fresh squares for every damage step, from the control block's key."""
        shape = self.plan.shape
        steps = len(shape.damage_steps)
        return [self._linear("draw_corners", steps * shape.batch)] if steps else []

    @cached_property
    def fire(self) -> list[Dispatch]:
        """Fresh fire masks from the control block's key."""
        half = -(-self.plan.shape.cells_per_grid // 2)
        return [self._linear("fire_mask", half * self.plan.shape.steps)]

    @cached_property
    def hard_forward(self) -> list[Dispatch]:
        """T CA steps of the hard circuit, from the first words, with damage on the way."""
        steps = range(self.plan.shape.steps)
        made = [self._hard_damage(0), *([*self._hard_step(step), *self._hard_damage(step + 1)] for step in steps)]
        return [dispatch for each in made for dispatch in each]

    def _hard_damage(self, step: int) -> list[Dispatch]:
        if step not in self.plan.shape.damage_steps:
            return []
        bound = {"shape": self.buffers["hard_shape"], "words": self.words(step), "mark": self._marks[step]}
        return [self._linear("hard_damage", self.plan.groups * self.plan.shape.cells_per_grid, bound)]

    def _hard_judge(self, step: int) -> list[Dispatch]:
        shape = self.plan.shape
        if step not in shape.judged_steps:
            return []
        values = self.plan.groups * shape.cells_per_grid * shape.loss_channels
        return [self._linear("hard_loss", values, {"shape": self.buffers["hard_shape"], "words": self.words(step)})]

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
        """The training batch joins the probes, T hard steps, and after the judged ones the count of wrong values."""
        shape = self.plan.shape
        values = self.plan.groups * shape.cells_per_grid * (shape.channels + shape.loss_channels)
        made = [
            [self._linear("pack", values, {"state": self.state(0), "words": self.words(0)})],
            self._hard_damage(0),
        ]
        for step in range(shape.steps):
            made.append([*self._hard_step(step), *self._hard_judge(step + 1), *self._hard_damage(step + 1)])
        return [dispatch for each in made for dispatch in each]

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
        plan = self.plan
        pipeline = self.device.pipeline(kernel, plan.schedule, plan.shape.half, plan.trees)
        return Dispatch(kernel, pipeline, group, x, y)

    def under(self, schedule: Schedule) -> Workspace:
        """The same memory under another schedule, with as many lanes and gates in the same order: other pipelines."""
        ours = self.plan.schedule
        assert (schedule.lanes, schedule.memory) == (ours.lanes, ours.memory)
        other = copy.copy(self)
        other.__dict__ = {name: value for name, value in vars(self).items() if name in _OWN}
        other.plan = replace(self.plan, schedule=schedule)
        assert other.plan.follows_trails == self.plan.follows_trails
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
