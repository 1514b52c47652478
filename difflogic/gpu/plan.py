"""What a piece of work needs from a device: sizes, bytes, loop trips; and the schedule that fits it.

Everything is decided and checked here, before a buffer or a pipeline exists. The blocks that sums are
taken over follow from circuit and grid alone; only the schedule (WG, LANES) follows from the adapter.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from difflogic.errors import LimitError
from difflogic.gpu.adapter import Adapter
from difflogic.gpu.kernels import KERNELS
from difflogic.gpu.loops import LINEAR_WG, loop_trips
from difflogic.layout import Layout
from difflogic.shape import Shape

CHUNK = 16
"""Cells that one invocation treats at once."""
MAX_BLOCKS = 512
"""Partial sums per instance at most; above that, blocks grow."""
MAX_LEVELS = 256
"""Length of the level table in `shaders/common/shape.wgsl`."""
MAX_GATES = 65535 * 8
"""Gates that one dispatch of `gradients` holds, eight to a workgroup."""
MAX_SCRATCH_GROUPS = 256
"""Workgroups at most where each needs scratch memory of its own; they loop over the rest."""
LOOP_BUDGET = 60_000
"""Loop trips per invocation and dispatch on adapters that cut loops short (at 65,535)."""
HISTORY = 64
"""Epochs whose metrics the ring on the device holds."""


@dataclass(frozen=True)
class Schedule:
    """WG: invocations per workgroup. LANES: chunks per workgroup. Neither changes any result."""

    wg: int
    lanes: int

    @property
    def workers(self) -> int:
        return self.wg // self.lanes


HARDWARE = (Schedule(256, 1), Schedule(128, 1), Schedule(64, 1))
"""Many invocations on each chunk: enough workgroups to fill the chip, short dependency chains."""
SOFTWARE = (Schedule(8, 8), Schedule(8, 1), Schedule(32, 1), Schedule(64, 1))
"""One invocation per chunk needs no barrier; the others divide long loops."""


@dataclass(frozen=True)
class Plan:
    """Sizes of the buffers of some models, under a schedule."""

    layouts: tuple[Layout, ...]
    """One per model: the same levels, each its own wires."""
    shape: Shape
    schedule: Schedule
    probes: int = 0
    """Start grids of hard evaluation."""
    hard_batch: int = 0
    """Samples of the training batch that are evaluated with them."""

    @property
    def models(self) -> int:
        return len(self.layouts)

    @property
    def layout(self) -> Layout:
        """What all layouts share: the levels and every size but that of the slots."""
        return self.layouts[0]

    @property
    def chunks_per_block(self) -> int:
        """A power of two; see the module's text."""
        return _power_of_two(-(-_chunks(self.shape.cells) // MAX_BLOCKS))

    @property
    def blocks(self) -> int:
        real = -(-_chunks(self.shape.cells) // self.chunks_per_block)
        return _round_up(real, self.schedule.lanes)

    @property
    def chunks(self) -> int:
        """Chunks of the soft batch, padded to whole blocks and workgroups."""
        return self.blocks * self.chunks_per_block

    @property
    def probe_groups(self) -> int:
        return -(-self.probes // 32)

    @property
    def groups(self) -> int:
        """Groups of 32 samples in hard evaluation: the probes', then the batch's."""
        return self.probe_groups + -(-self.hard_batch // 32)

    @property
    def hard_chunks(self) -> int:
        return _round_up(_chunks(self.groups * self.shape.cells_per_grid), self.schedule.lanes)

    @property
    def slots(self) -> int:
        """Slots per chunk in scratch, for the wiring that needs most; the last C are those of the last level."""
        return max(layout.slot_count for layout in self.layouts) + self.layout.channels

    @property
    def forward_groups(self) -> int:
        return min(self.chunks // self.schedule.lanes, 65535)

    @property
    def backward_groups(self) -> int:
        return min(self.blocks // self.schedule.lanes, MAX_SCRATCH_GROUPS)

    @property
    def hard_groups(self) -> int:
        return max(1, min(self.hard_chunks // self.schedule.lanes, MAX_SCRATCH_GROUPS))

    def buffer_bytes(self) -> dict[str, int]:
        """Bytes of each storage buffer; `nodes` is one of T buffers."""
        layout, shape, each = self.layout, self.shape, self.models
        chunk_bytes, lanes = CHUNK * 4, self.schedule.lanes
        states = (shape.steps + 1) * shape.channels * chunk_bytes
        return {
            "wires": each * layout.instances * 8,
            "edges": each * layout.nodes * 16,
            "logits": each * layout.gates * 64,
            "mu": each * layout.gates * 64,
            "nu": each * layout.gates * 64,
            "gradients": each * layout.gates * 64,
            "coefficients": each * layout.gates * 16,
            "gate_ids": each * layout.gates * 4,
            "control": each * 32,
            "history": each * HISTORY * 8,
            "masks": each * shape.steps * shape.cells_per_grid * 4,
            "hard_masks": each * shape.steps * shape.cells_per_grid * 4,
            "states": each * self.chunks * states,
            "targets": each * self.chunks * shape.loss_channels * chunk_bytes,
            "loss_partials": each * self.chunks * 4,
            "nodes": each * self.chunks * layout.nodes * chunk_bytes,
            "slots": each * self.backward_groups * lanes * self.slots * chunk_bytes,
            "d_patches": each * 2 * self.chunks * layout.patch_nodes * chunk_bytes,
            "partials": each * self.blocks * layout.instances * 16,
            "words": max(4, each * self.hard_chunks * states),
            "hard_nodes": each * self.hard_groups * lanes * layout.nodes * chunk_bytes,
            "hard_targets": shape.cells_per_grid * shape.loss_channels * 4,
            "counts": max(8, each * self.groups * 8),
        }

    def total_bytes(self) -> int:
        """Device memory in storage buffers."""
        sizes = self.buffer_bytes()
        return sum(sizes.values()) + (self.shape.steps - 1) * sizes["nodes"]

    def loop_trips(self) -> int:
        """The most loop rounds of one invocation in one dispatch of any kernel: a bound."""
        return max(loop_trips(self).values())

    def check(self, limits: Mapping[str, int], limits_loops: bool) -> None:
        """Raises LimitError, naming what is asked and what the device has."""
        if len(self.layout.levels) > MAX_LEVELS:
            raise LimitError(
                f"The circuit has {len(self.layout.levels)} layers, but the GPU kernels hold {MAX_LEVELS}: use fewer "
                "layers, or --engine reference."
            )
        if self.layout.gates > MAX_GATES:
            raise LimitError(
                f"The circuit has {self.layout.gates} gates, but the GPU kernels hold {MAX_GATES}: use narrower "
                "layers, or --engine reference."
            )
        for name, size in self.buffer_bytes().items():
            allowed = min(limits["max-storage-buffer-binding-size"], limits["max-buffer-size"])
            if size > allowed:
                raise LimitError(
                    f"The buffer '{name}' needs {size / 1e6:.1f} MB, but this device binds at most "
                    f"{allowed / 1e6:.1f} MB: use a smaller grid, batch or circuit."
                )
        if self.models > limits["max-compute-workgroups-per-dimension"]:
            raise LimitError(f"{self.models} models were asked for, but one dispatch holds 65535: train fewer at once.")
        self._check_kernels(limits)
        if limits_loops and self.loop_trips() > LOOP_BUDGET:
            raise LimitError(
                f"A dispatch would make up to {self.loop_trips()} loop trips per invocation, but this driver silently "
                f"stops at 65535: use Mesa 25 or newer, or a smaller circuit."
            )

    def _check_kernels(self, limits: Mapping[str, int]) -> None:
        largest = min(limits["max-compute-invocations-per-workgroup"], limits["max-compute-workgroup-size-x"])
        for spec in KERNELS.values():
            wg = wg_size(spec.name, self.schedule)
            if wg > largest:
                raise LimitError(f"The kernel {spec.name} needs workgroups of {wg}, but this device allows {largest}.")
            if spec.storage_buffers > limits["max-storage-buffers-per-shader-stage"]:
                raise LimitError(
                    f"The kernel {spec.name} binds {spec.storage_buffers} storage buffers, but this device allows "
                    f"{limits['max-storage-buffers-per-shader-stage']}."
                )
            memory = wg * spec.workgroup_bytes_per_invocation
            if memory > limits["max-compute-workgroup-storage-size"]:
                raise LimitError(
                    f"The kernel {spec.name} needs {memory} bytes of workgroup memory, but this device has "
                    f"{limits['max-compute-workgroup-storage-size']}."
                )


def wg_size(kernel: str, schedule: Schedule) -> int:
    """Invocations per workgroup of a kernel under a schedule."""
    return schedule.wg if "LANES" in KERNELS[kernel].overrides else LINEAR_WG


def make_plan(
    adapter: Adapter,
    limits: Mapping[str, int],
    layouts: Sequence[Layout],
    shape: Shape,
    probes: int = 0,
    hard_batch: int = 0,
    schedule: Schedule | None = None,
) -> Plan:
    """The first schedule of the adapter's kind that the device can run.

    Raises LimitError, for the last one tried, where none fits.
    """
    candidates = (schedule,) if schedule else SOFTWARE if adapter.software else HARDWARE
    failure: LimitError | None = None
    for candidate in candidates:
        plan = Plan(tuple(layouts), shape, candidate, probes, hard_batch)
        try:
            plan.check(limits, adapter.limits_loops)
        except LimitError as error:
            failure = error
        else:
            return plan
    assert failure is not None
    raise failure


def _chunks(cells: int) -> int:
    return -(-cells // CHUNK)


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


def _power_of_two(at_least: int) -> int:
    return 1 << math.ceil(math.log2(max(1, at_least)))
