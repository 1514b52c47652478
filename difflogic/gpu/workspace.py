"""Buffers, bind groups and dispatch lists of one plan: made once, used for every step after that.

A dispatch list is plain data: it is encoded again and again, and nothing in it changes from epoch to epoch. What does
change (keys, counters, the epoch) stands in the buffer `control`, which the kernels read and `commit` advances.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic.engine.events import NO_HARDENING, Hardening
from difflogic.engine.shape import Array, Hyper
from difflogic.errors import DeviceError
from difflogic.gpu.device import Device
from difflogic.gpu.kernels import KERNELS, LINEAR, TILED
from difflogic.gpu.launch import LaunchConfig
from difflogic.gpu.plan import CHUNK, Plan
from difflogic.gpu.submit import Dispatch, SubmitQueue, encode
from difflogic.gpu.uniforms import UniformStruct, event_indices, shape_values, uniform_struct
from difflogic.gpu.wiring import Wiring

_OWN = ("device", "plan", "hyper", "buffers", "several", "submit_queue", "_step_ranges", "_event_indices")
"""Attributes of a workspace that are not derived from its schedule."""


class Workspace:
    """Device memory for a plan, and the dispatches that work on it."""

    def __init__(
        self, device: Device, plan: Plan, hyper: Hyper, fire_rate: float = 1.0, hardening: Hardening = NO_HARDENING
    ) -> None:
        self.device, self.plan, self.hyper = device, plan, hyper
        sizes, counts = plan.buffer_bytes(), plan.buffer_counts()
        self.buffers: dict[str, Any] = {
            name: device.buffer(name, size) for name, size in sizes.items() if name not in counts
        }
        self.several: dict[str, list[Any]] = {
            name: [device.buffer(name, sizes[name]) for _ in range(count)] for name, count in counts.items()
        }
        self.submit_queue = SubmitQueue(device, self.buffers["coefficients"], plan.most_work)
        self._uniforms(fire_rate, hardening)
        self._upload_wiring()

    def _uniforms(self, fire_rate: float, hardening: Hardening) -> None:
        plan = self.plan
        for name, hard in (("shape", False), ("hard_shape", True)):
            self._blocks(
                name,
                uniform_struct("common/shape", "Shape"),
                [shape_values(plan, self.hyper, fire_rate, hardening, hard)],
            )
        rows = [
            (kernel, step, span)
            for kernel in TILED
            for step in range(plan.shape.steps)
            for span in TILED[kernel].ranges(plan)
        ]
        ats = self._blocks(
            "at",
            uniform_struct("common/shape", "StepRange"),
            [{"step": step, **span._asdict()} for _, step, span in rows],
        )
        self._step_ranges = dict(zip(rows, ats, strict=True))
        self._event_indices = self._blocks(
            "mark", uniform_struct("common/corners", "EventIndex"), event_indices(plan.shape)
        )

    def _blocks(self, name: str, struct: UniformStruct, rows: list[dict[str, Any]]) -> list[tuple[Any, int, int]]:
        """A buffer of uniform blocks; for each of them what a bind group takes: buffer, offset and size."""
        data = struct.pack_all(rows)
        self.buffers[name] = self.device.buffer(name, len(data), uniform=True)
        self.device.upload(self.buffers[name], data, "shape")
        return [(self.buffers[name], struct.stride * row, struct.fields.itemsize) for row in range(len(rows))]

    def _upload_wiring(self) -> None:
        self.device.upload(self.buffers["wires"], np.stack([each.wires for each in self.plan.wirings]), "circuit")
        if self.plan.training:
            self.device.upload(self.buffers["edges"], np.stack(list(map(self._edges, self.plan.wirings))), "circuit")

    def _edges(self, wiring: Wiring) -> Array:
        """The `Edge` of every instance, in the order of `wiring.order`, then of every patch node.

        Columns are the fields of the struct in `gate_backward.wgsl`: wires, slots, fanout (two each), gate, instance.
        Nobody reads the last level within a step: its slots, behind all others, take the adjoint of the next state.
        """
        layout = wiring.layout
        edges = np.zeros((layout.instances + layout.patch_nodes, 8), dtype=np.uint32)
        own, patch = np.split(edges, [layout.instances])
        own[:, 0:2], own[:, 2:4] = wiring.wires, wiring.slots
        own[wiring.inner :, 4:6] = wiring.fanout[layout.patch_nodes :]
        patch[:, 4:6] = wiring.fanout[: layout.patch_nodes]
        own[-layout.channels :, 4] = self.plan.slots - layout.channels + np.arange(layout.channels)
        own[-layout.channels :, 5] = own[-layout.channels :, 4] + 1
        own[:, 6], own[:, 7] = layout.instance_gates, np.arange(layout.instances)
        own[:] = own[wiring.order]  # a whole row moves; what others point at are slots and nodes, never rows
        return edges

    # dispatch lists -----------------------------------------------------------------------------------

    @cached_property
    def coefficients(self) -> list[Dispatch]:
        """logits -> coefficients and hard gates."""
        return [self._dispatch("coefficients")]

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
            "kept": self.several["kept"][step]
            if plan.launch.store_activations and plan.shape.half
            else self.buffers["nothing"],
        }
        return self._tiled("gate_forward", step, bound)

    def _judge(self, step: int) -> list[Dispatch]:
        """The loss of a state, where one is taken there that is not the last."""
        shape = self.plan.shape
        if step not in shape.judged_steps[:-1] or not self.plan.training:
            return []
        return [self._dispatch("step_loss", {"state": self.state(step), "mark": self._event_indices[step]})]

    def _damage(self, step: int) -> list[Dispatch]:
        """The damage of a state, which may have been done before, where there is any."""
        if step not in self.plan.shape.damage_steps:
            return []
        return [self._dispatch("damage", {"state": self.state(step), "mark": self._event_indices[step]})]

    @cached_property
    def backward(self) -> list[Dispatch]:
        """Loss, T steps backward, gradients of the logits, and whether they count."""
        steps = self.plan.shape.steps
        bound = {"state": self.state(steps), "d_rows": self._d_rows(steps)}
        return [
            self._dispatch("loss", bound),
            *(dispatch for step in reversed(range(steps)) for dispatch in self.backward_step(step)),
            self._dispatch("gradients"),
            *([self._dispatch("clip_norm")] if self.hyper.clip_by == "norm" else []),
            self._dispatch("commit"),
        ]

    def backward_step(self, step: int) -> list[Dispatch]:
        """One CA step backward, and what happened to its state before it.

        Before it, the forward steps whose states were not kept, where it needs them first.
        """
        bound = {
            "kept": self.several["kept"][step] if self.plan.launch.store_activations else self.state(step),
            "d_next": self._d_rows(step + 1),
            "values": self.buffers["scratch"],
            "d_rows": self._d_rows(step),
        }
        fused = [*self._forward_again(step), *self._tiled("gate_backward", step, bound)]
        return [*fused, *(self._d_events(step) if step > 0 else [])]

    def _d_events(self, step: int) -> list[Dispatch]:
        """The adjoints of a state's damage and of its loss."""
        shape, made = self.plan.shape, []
        bound = {"d_rows": self._d_rows(step), "mark": self._event_indices[step]}
        if step in shape.damage_steps:
            made.append(self._dispatch("d_damage", bound))
        if step in shape.judged_steps:
            made.append(self._dispatch("step_loss_backward", bound))
        return made

    def _forward_again(self, step: int) -> list[Dispatch]:
        """Where `step` is the last after a kept state: the steps from that state on, but for the last such piece."""
        spacing = self.plan.checkpoint_every
        if step % spacing != spacing - 1 or step == self.plan.shape.steps - 1:
            return []
        steps = range(step - spacing + 1, step)
        return [dispatch for again in steps for dispatch in (*self.forward_step(again), *self._damage(again + 1))]

    @cached_property
    def update(self) -> list[Dispatch]:
        """New logits; and the batch goes back into the pool, where it came from one."""
        plan = self.plan
        adamw = self._dispatch("adamw")
        if not plan.batch_source.pool:
            return [adamw]
        last = {"state": self.state(plan.shape.steps)}
        return [
            self._dispatch("sample_losses", last),
            adamw,
            self._dispatch("write_back", last),
        ]

    @cached_property
    def harden(self) -> list[Dispatch]:
        """logits -> coefficients of an epoch with hardened gates."""
        return [self._dispatch("harden")]

    @cached_property
    def seed(self) -> list[Dispatch]:
        """Start grids by the control block's key, fresh or from the pool, and a rule's targets."""
        plan, first = self.plan, {"state": self.state(0)}
        kernel = {"random": "seed_grid", "boards": "seed_boards"}.get(plan.batch_source.start, "same_start")
        made = [self._dispatch(kernel, {"state": self.buffers["fresh"]} if plan.batch_source.pool else first)]
        if plan.batch_source.pool:
            made.append(self._dispatch("draw_pool", first))
        if plan.batch_source.ruled:
            made.append(self._dispatch("rule_target", first))
        return made

    @cached_property
    def corners(self) -> list[Dispatch]:
        """Fresh squares for every damage step, from the control block's key."""
        return [self._dispatch("draw_corners")] if self.plan.shape.damage_steps else []

    @cached_property
    def fire(self) -> list[Dispatch]:
        """Fresh fire masks from the control block's key."""
        return [self._dispatch("fire_mask")]

    @cached_property
    def hard_forward(self) -> list[Dispatch]:
        """T CA steps of the hard circuit, from the first words, with damage on the way."""
        steps = range(self.plan.shape.steps)
        made = [self._hard_damage(0), *([*self._hard_step(step), *self._hard_damage(step + 1)] for step in steps)]
        return [dispatch for each in made for dispatch in each]

    def _hard_damage(self, step: int) -> list[Dispatch]:
        if step not in self.plan.shape.damage_steps:
            return []
        bound = {"shape": self.buffers["hard_shape"], "words": self.words(step), "mark": self._event_indices[step]}
        return [self._dispatch("hard_damage", bound)]

    def _hard_judge(self, step: int) -> list[Dispatch]:
        shape = self.plan.shape
        if step not in shape.judged_steps:
            return []
        return [self._dispatch("hard_loss", {"shape": self.buffers["hard_shape"], "words": self.words(step)})]

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
        made = [
            [self._dispatch("pack", {"state": self.state(0), "words": self.words(0)})],
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
        plan, grid = self.plan, TILED[kernel]
        made = []
        for each in grid.ranges(plan):
            group = self._bind(kernel, bound | {"at": self._step_ranges[kernel, step, each]})
            workgroups, work = min(grid.workgroups(plan), each.tiles), each.tiles * each.parts * grid.work(plan)
            made.append(Dispatch(kernel, self._pipeline(kernel), group, workgroups, 1, work))
        return made

    def _dispatch(self, kernel: str, bound: dict[str, Any] | None = None) -> Dispatch:
        """A kernel over a plain list."""
        workgroups = LINEAR[kernel].workgroups(self.plan)
        return Dispatch(kernel, self._pipeline(kernel), self._bind(kernel, bound or {}), workgroups, self.plan.models)

    def _bind(self, kernel: str, bound: dict[str, Any]) -> Any:
        """`bound`: the buffers of bindings that have no buffer of their name, or another here."""
        return self.device.bind(kernel, KERNELS[kernel].bindings, self.buffers | bound)

    def _pipeline(self, kernel: str) -> Any:
        return self.device.pipeline(kernel, self.plan.launch, self.plan.shape.half, self.plan.trees)

    def under(self, launch: LaunchConfig) -> Workspace:
        """The same memory under another schedule, with as many lanes: other pipelines.

        Raises DeviceError for a schedule that needs other memory.
        """
        if (launch.chunks_per_workgroup, launch.memory) != (
            self.plan.launch.chunks_per_workgroup,
            self.plan.launch.memory,
        ):
            raise DeviceError("This schedule lays its memory out in another way: it needs a workspace of its own.")
        other = copy.copy(self)
        other.__dict__ = {name: value for name, value in vars(self).items() if name in _OWN}
        other.plan = replace(self.plan, launch=launch)
        return other

    # use ----------------------------------------------------------------------------------------------

    def submit(self, dispatches: Sequence[Dispatch]) -> None:
        """Queue the work, in several submits where it is long."""
        *before, last = self.submit_queue.pieces(dispatches)
        self.submit_queue.submit(before)
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
        self.submit_queue.close()


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
