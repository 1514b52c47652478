"""Buffers, bind groups and dispatch lists of a plan, created once and used for every step.

A dispatch list is constant data that is encoded for every epoch. Values that change (keys, counters, the epoch) are in
the buffer `control`, which the kernels read and `commit` advances.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from difflogic.core import prng
from difflogic.engine.events import NO_HARDENING, Hardening
from difflogic.engine.shape import Array, Hyper
from difflogic.errors import DeviceError, LimitError
from difflogic.gpu.device import DeviceVerbs, computing
from difflogic.gpu.kernels import KERNELS, LINEAR, TILED, DispatchRange, windows
from difflogic.gpu.launch import LaunchConfig
from difflogic.gpu.plan import CHUNK, Plan
from difflogic.gpu.shaders import Sizes
from difflogic.gpu.submit import Dispatch, SubmitQueue, encode
from difflogic.gpu.uniforms import UniformStruct, event_indices, shape_values, uniform_struct

# Buffers by the lifetime of their contents; a * means several buffers, one per CA step or a few used alternately.
#
#     the run          wires, edges (the circuit); targets that are the same for every initial state; same, rule, x, y,
#                      hard_masks; the evaluation grids' part of hard_targets, words* 0 and corners
#     epoch to epoch   logits, mu, nu, control, pool; coefficients and gate_ids, which adamw computes for the next one;
#                      history, a ring of 64 epochs that the host reads now and then
#     a train step     masks, corners of the batch, fresh, places; states*, kept*, d_judged, loss_partials; partials,
#                      gradients, sample_losses
#     a CA step        scratch: nodes forward, nodes and slots backward, bits in hard evaluation; d_patches*, two
#
# Buffers of a train step are not cleared: each is written before it is read, and partials begin with an assignment.
_OWN = ("device", "plan", "hyper", "buffers", "several", "submit_queue", "_sizes", "_step_ranges", "_event_indices")
"""Attributes of a workspace to copy if only its schedule changes; `plan` is then replaced."""


class Workspace:
    """Device memory of a plan, and the dispatches that use this memory."""

    def __init__(
        self, device: DeviceVerbs, plan: Plan, hyper: Hyper, fire_rate: float = 1.0, hardening: Hardening = NO_HARDENING
    ) -> None:
        self.device, self.plan, self.hyper = device, plan, hyper
        sizes, counts = plan.buffer_bytes(), plan.buffer_counts()
        self.buffers: dict[str, Any] = {}
        self.several: dict[str, list[Any]] = {name: [] for name in counts}
        try:
            for name in (name for name in sizes if name not in counts):
                self.buffers[name] = device.buffer(name, sizes[name])
            for name, count in counts.items():
                for _ in range(count):
                    self.several[name].append(device.buffer(name, sizes[name]))
        except LimitError:
            self.close()
            raise
        self._uniforms(fire_rate, hardening)
        wires = [each.near_wires if plan.launch.split_chunks else each.wires for each in plan.wirings]
        device.upload(self.buffers["wires"], np.stack(wires).swapaxes(2, -1), "circuit")
        if plan.training:
            edges = [each.edges(plan.slots, plan.launch.split_chunks) for each in plan.wirings]
            device.upload(self.buffers["edges"], np.stack(edges), "circuit")

    def _uniforms(self, fire_rate: float, hardening: Hardening) -> None:
        plan = self.plan
        struct = uniform_struct("common/shape", "Shape")
        self._sizes: dict[str, Sizes] = {}
        for name, hard in (("shape", False), ("hard_shape", True)):
            values = shape_values(plan, self.hyper, fire_rate, hardening, hard)
            self._blocks(name, struct, [values])
            self._sizes[name] = struct.whole_numbers(values)
        keys = [(kernel, step, span) for kernel in TILED for step in range(plan.shape.steps)
                for span in TILED[kernel].ranges(plan)]  # fmt: skip
        keys += [("d_start", 0, span) for span in windows(plan)]
        rows = [{"step": step, **span._asdict()} for _, step, span in keys]
        ranges = self._blocks("at", uniform_struct("common/shape", "StepRange"), rows)
        self._step_ranges = dict(zip(keys, ranges, strict=True))
        events = uniform_struct("common/shape", "EventIndex")
        self._event_indices = self._blocks("mark", events, event_indices(plan.shape))

    def _blocks(self, name: str, struct: UniformStruct, rows: list[dict[str, Any]]) -> list[tuple[Any, int, int]]:
        """Create a buffer with one uniform block per row; return each block's `(buffer, offset, size)` for binding."""
        # One buffer for all blocks, bound at different offsets, saves allocations.
        data = struct.pack_all(rows)
        self.buffers[name] = self.device.buffer(name, len(data), uniform=True)
        self.device.upload(self.buffers[name], data, "shape")
        return [(self.buffers[name], struct.stride * row, struct.fields.itemsize) for row in range(len(rows))]

    # dispatch lists -----------------------------------------------------------------------------------

    @cached_property
    def coefficients(self) -> list[Dispatch]:
        """Dispatches that compute the coefficients and the hard gates from the logits."""
        return [self.dispatch("coefficients")]

    @cached_property
    def forward(self) -> list[Dispatch]:
        """Dispatches of T CA steps of the soft circuit, including damage and all losses but the final state's."""
        judged = self.plan.shape.judged_steps[:-1] if self.plan.training and not self.plan.given else ()
        made = self._damage(0)
        for step in range(self.plan.shape.steps):
            made += self.forward_step(step)
            made += self._event("step_loss", step + 1, judged, {"state": self.state(step + 1)})
            made += self._damage(step + 1)
        return made

    @cached_property
    def forward_one_hot(self) -> list[Dispatch]:
        """Dispatches of a function's forward pass with hard gates, as soft gates with one-hot probabilities."""
        one_hot = {"coefficients": self.buffers["one_hot"]}
        return [each for step in range(self.plan.shape.steps) for each in self.forward_step(step, one_hot)]

    def forward_step(self, step: int, other: dict[str, Any] | None = None) -> list[Dispatch]:
        """Return the dispatches of one CA step of the soft circuit; `other` replaces buffers by binding name."""
        values = self.several["kept"][step] if self.plan.launch.store_activations else self.buffers["scratch"]
        bound = {"state": self.state(step), "next_state": self.state(step + 1), "values": values}
        return self._tiled("gate_forward", step, bound | (other or {}))

    def _damage(self, step: int, hard: bool = False) -> list[Dispatch]:
        """Return the dispatches that apply damage and faults to the state of `step`, if there are any."""
        kind, bound = ("hard_", self._hard_state(step)) if hard else ("", {"state": self.state(step)})
        damage = self._event(f"{kind}damage", step, self.plan.shape.damage_steps, bound)
        return [*damage, *self._event(f"{kind}faults", step, self._faulty, bound)]

    @property
    def _faulty(self) -> Sequence[int]:
        """Steps whose initial states have faults; empty if the task has no faults."""
        return range(self.plan.shape.steps if self.plan.shape.faults.states else 0)

    def _event(self, kernel: str, step: int, steps: Sequence[int], bound: dict[str, Any]) -> list[Dispatch]:
        """Return the dispatch of `kernel` for the state of `step` as a list, empty unless `steps` contains `step`."""
        return [self.dispatch(kernel, bound | {"mark": self._event_indices[step]})] if step in steps else []

    @cached_property
    def backward(self) -> list[Dispatch]:
        """Dispatches of the loss, T backward steps, the logits' gradients, and the check that these are finite."""
        steps = self.plan.shape.steps
        bound = {"state": self.state(steps), "d_patches": self.d_patches(steps)}
        return [
            self.dispatch("loss", bound),
            *(dispatch for step in reversed(range(steps)) for dispatch in self.backward_step(step)),
            self.dispatch("gradients"),
            *([self.dispatch("clip_norm")] if self.hyper.clip_by == "norm" else []),
            self.dispatch("commit"),
        ]

    @cached_property
    def pull_back(self) -> list[Dispatch]:
        """Dispatches that compute the initial state's adjoint and the gradients from the last state's adjoint.

        The last state's adjoint is read from `d_judged` or, without perception, from `d_patches`.
        """
        shape, perceives = self.plan.shape, self.plan.perceives
        last, gathers = {"d_patches": self.d_patches(shape.steps)}, perceives and not self.plan.gathers
        return [
            *(self._event("step_loss_backward", shape.steps, shape.judged_steps, last) if perceives else []),
            *(dispatch for step in reversed(range(shape.steps)) for dispatch in self.backward_step(step)),
            self.dispatch("gradients"),
            *([self._gather(windows(self.plan)[0], self.d_patches(0), self.buffers["d_start"])] if gathers else []),
        ]

    def backward_step(self, step: int) -> list[Dispatch]:
        """Return the dispatches of one backward CA step, including recomputed forward steps and the state's events."""
        gathers, result = self.plan.gathers, self.d_patches(step)
        bound = {
            "kept": self.several["kept"][step] if self.plan.launch.store_activations else self.state(step),
            "d_next": self.d_patches(step + 1),
            "values": self.buffers["scratch"],
            "d_patches": self.buffers["d_window"] if gathers else result,
        }
        made = self._forward_again(step)
        for window in windows(self.plan):
            made += self._tiled("gate_backward", step, bound, window.first)
            made += [self._gather(window, bound["d_patches"], result)] if gathers else []
        return [*made, *(self._d_events(step) if step > 0 else [])]

    def _gather(self, window: DispatchRange, d_next: Any, d_start: Any) -> Dispatch:
        """Return the dispatch that sums a window's patch adjoints `d_next` into state adjoints `d_start`."""
        at = self._step_ranges["d_start", 0, window]
        return self.dispatch("d_start", {"at": at, "d_next": d_next, "d_start": d_start})

    def _d_events(self, step: int) -> list[Dispatch]:
        """Return the dispatches that apply faults, damage and loss of the state of `step` to its adjoint."""
        shape, bound = self.plan.shape, {"d_patches": self.d_patches(step)}
        damage = self._event("d_damage", step, shape.damage_steps, bound)
        events = [*self._event("d_faults", step, self._faulty, bound), *damage]
        return [*events, *self._event("step_loss_backward", step, shape.judged_steps, bound)]

    def _forward_again(self, step: int) -> list[Dispatch]:
        """Return dispatches that recompute states between two checkpoints; empty unless `step` leads to the second."""
        # `step` leads to the next checkpoint; for the last steps, the buffers still contain the states in between.
        spacing = self.plan.checkpoint_every
        if step % spacing != spacing - 1 or step == self.plan.shape.steps - 1:
            return []
        steps = range(step - spacing + 1, step)
        return [dispatch for again in steps for dispatch in (*self.forward_step(again), *self._damage(again + 1))]

    @cached_property
    def update(self) -> list[Dispatch]:
        """Dispatches that update the logits and, with a sample pool, write the batch back into the pool."""
        adamw = self.dispatch("adamw")
        if not self.plan.batch_source.pool or self.plan.batch_source.stays:
            return [adamw]
        last = {"state": self.state(self.plan.shape.steps)}
        return [self.dispatch("sample_losses", last), adamw, self.dispatch("write_back", last)]

    @cached_property
    def seed(self) -> list[Dispatch]:
        """Dispatches that sample initial states with the random key in the control block, and compute their targets."""
        plan, first = self.plan, {"state": self.state(0)}
        kernel = {"random": "seed_grid", "boards": "seed_boards"}.get(plan.batch_source.start, "same_start")
        made = [self.dispatch(kernel, {"state": self.buffers["fresh"]} if plan.batch_source.pool else first)]
        if plan.batch_source.pool:
            made.append(self.dispatch("draw_pool", first))
        if plan.batch_source.ruled:
            made.append(self.dispatch("rule_target", first))
        if plan.batch_source.samples:
            made.append(self.dispatch("draw_samples", first))
        return made

    @cached_property
    def corners(self) -> list[Dispatch]:
        """Dispatches that sample damage squares and the key of faults with the random key in the control block."""
        drawn = [self.dispatch("draw_corners")] if self.plan.shape.damage_steps else []
        return [*drawn, *([self.dispatch("draw_faults")] if self._faulty else [])]

    @cached_property
    def evaluation(self) -> list[Dispatch]:
        """Dispatches of an evaluation: T hard steps of evaluation grids and batch, and the counting of mismatches."""
        pack = self.dispatch("pack", {"state": self.state(0), "words": self.words(0)})
        return [pack, *self.hard_forward(self.plan.shape.judged_steps)]

    def hard_forward(self, judged: Sequence[int] = ()) -> list[Dispatch]:
        """Return the dispatches of T hard CA steps, with damage and faults, and the losses after steps `judged`."""
        made = self._damage(0, hard=True)
        always = {"masks": self.buffers["hard_masks"], "values": self.buffers["scratch"]}
        for step in range(self.plan.shape.steps):
            bound = always | self._hard_state(step) | {"next_words": self.words(step + 1)}
            made += self._tiled("hard_forward", step, bound)
            made += self._event("hard_loss", step + 1, judged, self._hard_state(step + 1))
            made += self._damage(step + 1, hard=True)
        return made

    def _hard_state(self, step: int) -> dict[str, Any]:
        """Return the bindings of a step's hard state and of the uniform with its shape."""
        return {"shape": self.buffers["hard_shape"], "words": self.words(step)}

    def state(self, step: int) -> Any:
        return self.several["states"][self.plan.state_slot(step)]

    def words(self, step: int) -> Any:
        return self.several["words"][self.plan.word_slot(step)]

    def d_patches(self, step: int) -> Any:
        """Return the buffer for the patch adjoints of `step`; odd and even steps alternate between two buffers."""
        return self.several["d_patches"][step % 2]

    def _tiled(self, kernel: str, step: int, bound: dict[str, Any], window: int = 0) -> list[Dispatch]:
        """Return the dispatches of a fused step for the window that begins at chunk `window`."""
        plan, grid = self.plan, TILED[kernel]
        made = []
        for each in (span for span in grid.ranges(plan) if span.window == window):
            group = self._bind(kernel, bound | {"at": self._step_ranges[kernel, step, each]})
            workgroups = plan.launch.groups_per_tile * min(grid.workgroups(plan), each.tiles)
            work = each.tiles * each.parts * grid.work(plan)
            made.append(Dispatch(kernel, self._pipeline(kernel), group, workgroups, 1, work))
        return made

    def dispatch(self, kernel: str, bound: dict[str, Any] | None = None) -> Dispatch:
        """Return the dispatch of a kernel with a Linear grid; `bound` replaces buffers by binding name."""
        # Models are the second dimension; `_tiled` numbers the tiles of all models consecutively instead.
        workgroups = LINEAR[kernel].workgroups(self.plan)
        return Dispatch(kernel, self._pipeline(kernel), self._bind(kernel, bound or {}), workgroups, self.plan.models)

    def _bind(self, kernel: str, bound: dict[str, Any]) -> Any:
        """Create the bind group of a kernel; `bound` maps binding names to buffers that replace the workspace's."""
        return self.device.bind(KERNELS[kernel].source, self.buffers | bound)

    def _pipeline(self, kernel: str) -> Any:
        # Only the fused steps of a training repeat often enough to be worth compiling for its sizes.
        is_baked = self.plan.training and kernel in TILED
        sizes = self._sizes["hard_shape" if kernel == "hard_forward" else "shape"] if is_baked else ()
        return self.device.pipeline(kernel, KERNELS[kernel].constants(self.plan), sizes)

    def under(self, launch: LaunchConfig) -> Workspace:
        """Return a workspace that shares these buffers but uses `launch`. Raises DeviceError if the layout differs."""
        if launch.layout != self.plan.launch.layout:
            raise DeviceError("Expected a schedule with the same memory layout: create a new workspace for it.")
        # The cached dispatch lists are not copied, since they contain pipelines of the old schedule.
        other = copy.copy(self)
        other.__dict__ = {name: value for name, value in vars(self).items() if name in _OWN}
        other.plan = replace(self.plan, launch=launch)
        return other

    # use ----------------------------------------------------------------------------------------------

    @cached_property
    def submit_queue(self) -> SubmitQueue:
        """Queue for submits, created at first use. Raises DeviceError on a RecordingDevice."""
        return SubmitQueue(computing(self.device), self.buffers["coefficients"], self.plan.most_work)

    def submit(self, dispatches: Sequence[Dispatch]) -> None:
        """Submit the dispatches, divided into several submits if the work is long."""
        *before, last = self.submit_queue.pieces(dispatches)
        self.submit_queue.submit(before)
        device = self.submit_queue.device
        device.queue.submit([encode(device, last).finish()])

    def set_faults(self, keys: Sequence[prng.Key], listed: Array | None) -> None:
        """Upload each model's key of faults for evaluation grids and batch, and the array `listed` of stuck cells."""
        self.upload("fault_keys", np.stack([(key, key) for key in keys]), "task")
        if listed is not None:
            self.upload("listed", listed.astype(np.uint32), "task")

    def upload(self, buffer: str | Any, data: Array, purpose: str) -> None:
        """Write `data` to the beginning of `buffer`, which is a name or a buffer object."""
        self.device.upload(self.buffers[buffer] if isinstance(buffer, str) else buffer, data, purpose)

    def download(self, name: str, dtype: npt.DTypeLike, purpose: str) -> Array:
        return computing(self.device).download(self.buffers[name], dtype, purpose)

    def download_all(self, name: str, dtype: npt.DTypeLike, purpose: str) -> Array:
        """Download all buffers with this name, stacked along a new first axis."""
        download = computing(self.device).download
        return np.stack([download(buffer, dtype, purpose) for buffer in self.several[name]])

    def close(self) -> None:
        """Free all buffers. All submitted work must be done, since wgpu aborts otherwise."""
        for buffer in (*self.buffers.values(), *(each for buffers in self.several.values() for each in buffers)):
            buffer.destroy()
        if "submit_queue" in vars(self):
            self.submit_queue.close()


def to_chunks(values: Array, chunks: int) -> Array:
    """Rearrange `[..., cells, C]` to `[..., chunks, C, 16]`, padding with zeros."""
    *lead, cells, channels = values.shape
    padded = np.zeros((*lead, chunks * CHUNK, channels), dtype=values.dtype)
    padded[..., :cells, :] = values
    return np.ascontiguousarray(padded.reshape(*lead, chunks, CHUNK, channels).swapaxes(-1, -2))


def from_chunks(values: Array, cells: int) -> Array:
    """Invert `to_chunks`: rearrange `[..., chunks, C, 16]` to `[..., cells, C]`."""
    *lead, chunks, channels, _ = values.shape
    return np.ascontiguousarray(values.swapaxes(-1, -2).reshape(*lead, chunks * CHUNK, channels)[..., :cells, :])
