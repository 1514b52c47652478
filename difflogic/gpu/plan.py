"""What a piece of work needs from a device: sizes, bytes, loop trips; and the schedule that fits it.

Everything is decided and checked here, before a buffer or a pipeline exists. The blocks that sums are
taken over follow from circuit and grid alone; only the schedule (WG, LANES) follows from the adapter.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from difflogic.errors import LimitError
from difflogic.gpu.adapter import Adapter
from difflogic.gpu.kernels import KERNELS, TILED, KernelSpec
from difflogic.gpu.loops import LINEAR_WG, loop_trips
from difflogic.gpu.spans import Span, spans
from difflogic.gpu.trails import Trails
from difflogic.gpu.trees import Wiring
from difflogic.layout import Layout
from difflogic.memory import physical_memory
from difflogic.rules import ENTRIES as RULE_ENTRIES
from difflogic.shape import Shape

CHUNK = 16
"""Cells that one invocation treats at once."""
HALF_BYTES = 2 * CHUNK + 4
"""Bytes of a chunk's values of one node in 16 bits: codes, and a word for their range."""
MAX_BLOCKS = 512
"""Partial sums per instance at most; above that, blocks grow."""
MAX_LEVELS = 256
"""Length of the level table in `shaders/common/shape.wgsl`."""
MAX_GATES = 65535 * 8
"""Gates that one dispatch of `gradients` holds, eight to a workgroup."""
MAX_SCRATCH_GROUPS = 256
"""Workgroups at most where each needs scratch memory of its own; they loop over the rest."""
SCRATCH_BYTES = 96 << 20
"""Scratch memory at most, unless a single workgroup needs more."""
KEEP_BYTES = 1 << 30
"""Without a limit from the user, nodes are kept where a plan then needs no more than this..."""
KEEP_SHARE = 8
"""...or, on software, whose memory is the machine's, than this fraction of it."""
STATES_BYTES = 1_000_000_000
"""Without a limit from the user, every state is kept where a plan then needs no more than this."""
HARDWARE_WORK = 1 << 30
"""Gate evaluations of one dispatch at most: a fraction of 100 ms on a small integrated GPU, where it counts."""
SOFTWARE_WORK = 1 << 26
"""The same for software: some 60 ms on two cores."""
BACKWARD_WORK = 4
"""Evaluations that a gate costs backward."""
LOOP_BUDGET = 60_000
"""Loop trips per invocation and dispatch on adapters that cut loops short (at 65,535)."""
HISTORY = 64
"""Epochs whose metrics the ring on the device holds."""


@dataclass(frozen=True)
class Schedule:
    """How the fused steps are run. Nothing here changes any result."""

    wg: int
    """Invocations per workgroup of gate_backward, and of the others where they have no number of their own."""
    lanes: int
    """Chunks per workgroup."""
    keep: bool = True
    """Whether the forward pass keeps every node's value for the backward pass, or that computes them again."""
    forward_wg: int = 0
    hard_wg: int = 0
    spacing: int = 1
    """Without kept nodes, every so-manieth state is kept; the forward steps between are run again."""

    @property
    def memory(self) -> tuple[bool, int]:
        """What of the forward pass is kept."""
        return self.keep, self.spacing

    def with_memory(self, keep: bool, spacing: int = 1) -> Schedule:
        """The same with nodes kept, or computed again from states so many steps apart."""
        return replace(self, keep=keep, spacing=spacing)

    def wg_of(self, kernel: str) -> int:
        """Invocations per workgroup of a fused step."""
        own = {"gate_forward": self.forward_wg, "hard_forward": self.hard_wg}
        return own.get(kernel, 0) or self.wg

    def workers(self, kernel: str) -> int:
        """Invocations that share a chunk."""
        return self.wg_of(kernel) // self.lanes

    def runs_as(self, other: Schedule) -> bool:
        """Whether every kernel runs the same under both."""
        alike = all(self.wg_of(kernel) == other.wg_of(kernel) for kernel in TILED)
        return alike and (self.lanes, self.memory) == (other.lanes, other.memory)

    def is_sound(self) -> bool:
        """Whether every workgroup divides evenly among its lanes."""
        divides = self.lanes > 0 and all(wg > 0 and wg % self.lanes == 0 for wg in map(self.wg_of, TILED))
        return divides and self.spacing > 0


HARDWARE = (Schedule(256, 1), Schedule(128, 1), Schedule(64, 1))
"""Many invocations on each chunk: enough workgroups to fill the chip, short dependency chains."""
SOFTWARE = (Schedule(8, 8), Schedule(8, 1), Schedule(32, 1), Schedule(64, 1))
"""One invocation per chunk needs no barrier; the others divide long loops."""


@dataclass(frozen=True)
class Supply:
    """Where start grids and targets come from."""

    start: str = "random"
    """As in TaskConfig."""
    ruled: bool = False
    """Whether a rule makes the targets."""
    pool: int = 0
    """Grids of the sample pool; 0 where there is none."""
    resets: int = 0
    """As TrainConfig's `pool_reset`."""


@dataclass(frozen=True)
class Plan:
    """Sizes of the buffers of some models, under a schedule."""

    wirings: tuple[Wiring, ...]
    """One per model: the same levels, each its own wires."""
    shape: Shape
    schedule: Schedule
    probes: int = 0
    """Start grids of hard evaluation."""
    hard_batch: int = 0
    """Samples of the training batch that are evaluated with them."""
    training: bool = True
    """False: only rollouts, without the buffers of the backward pass."""
    asynchronous: bool = True
    """Whether there are fire masks."""
    most_work: int = HARDWARE_WORK
    """Gate evaluations of one dispatch at most."""
    supply: Supply = Supply()
    keep_bytes: int = KEEP_BYTES
    """What a plan that keeps nodes may need where the user sets no limit."""

    @property
    def models(self) -> int:
        return len(self.wirings)

    @property
    def layout(self) -> Layout:
        """What all layouts share: the levels and every size but that of the slots."""
        return self.wirings[0].layout

    @property
    def trees(self) -> bool:
        """Whether perception is computed as trees."""
        return self.wirings[0].trees

    @property
    def nodes(self) -> int:
        """Values of a cell that are written down in a step."""
        return self.wirings[0].nodes

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
    def corner_samples(self) -> int:
        """Samples that have squares: the probes in groups of 32, then the batch likewise."""
        return 32 * (self.probe_groups + -(-self.shape.batch // 32))

    @property
    def grid_words(self) -> int:
        """Words of 32 values that a grid of the sample pool takes."""
        return -(-self.shape.cells_per_grid * self.shape.channels // 32)

    @property
    def hard_chunks(self) -> int:
        return _round_up(_chunks(self.groups * self.shape.cells_per_grid), self.schedule.lanes)

    @property
    def follows_trails(self) -> bool:
        """Whether an invocation follows trails of gates: where it has a chunk to itself."""
        return self.schedule.workers("gate_backward") == 1

    @property
    def trails(self) -> list[Trails]:
        """One per model: in which order instances are taken."""
        return [wiring.trails if self.follows_trails else wiring.apart for wiring in self.wirings]

    @property
    def slots(self) -> int:
        """Slots per chunk in scratch, for the wiring that needs most; the last C are those of the last level."""
        return max(trails.slot_count for trails in self.trails) + self.layout.channels

    @property
    def window(self) -> int:
        """Values of a chunk's patch adjoints per channel and row above, level or below: `common/d_rows.wgsl`."""
        width = self.shape.width
        pieces = 1 if width % CHUNK == 0 else (CHUNK + width - 2) // width + 1
        return CHUNK + 2 * pieces

    @property
    def forward_groups(self) -> int:
        tiles = self._tiles("gate_forward")
        return min(tiles, 65535) if self.keeps_as_is else self._scratch_groups(tiles, self.nodes)

    @property
    def keeps_as_is(self) -> bool:
        """Whether the forward pass works on the very values that are kept."""
        return self.schedule.keep and not self.shape.half

    @property
    def backward_groups(self) -> int:
        return self._scratch_groups(self._tiles("gate_backward"), self._backward_width)

    @property
    def hard_groups(self) -> int:
        return self._scratch_groups(self._tiles("hard_forward"), self.nodes)

    @property
    def _backward_width(self) -> int:
        """Chunks that a lane needs as scratch in the backward pass."""
        return self.slots + (0 if self.schedule.keep else self.nodes)

    def _tiles(self, kernel: str) -> int:
        """Tiles of all models."""
        items = {"gate_forward": self.chunks, "gate_backward": self.blocks, "hard_forward": self.hard_chunks}
        return self.models * items[kernel] // self.schedule.lanes

    def _scratch_groups(self, tiles: int, width: int) -> int:
        """Workgroups for so many tiles where each has scratch memory of `width` chunks for every lane."""
        affordable = SCRATCH_BYTES // (self.schedule.lanes * width * CHUNK * 4)
        return max(1, min(tiles, MAX_SCRATCH_GROUPS, affordable))

    def groups_of(self, kernel: str) -> int:
        """Workgroups at most of a fused step."""
        groups = {
            "gate_forward": self.forward_groups,
            "gate_backward": self.backward_groups,
            "hard_forward": self.hard_groups,
        }
        return groups[kernel]

    def work_of(self, kernel: str) -> int:
        """Gate evaluations of a fused step for one chunk of each lane."""
        times = BACKWARD_WORK + (not self.schedule.keep) if kernel == "gate_backward" else 1
        return times * self.schedule.lanes * CHUNK * self.layout.instances

    def spans(self, kernel: str) -> list[Span]:
        """The dispatches that one CA step of a fused step takes."""
        parts = self.chunks_per_block if kernel == "gate_backward" else 1
        return spans(self._tiles(kernel), parts, self.work_of(kernel), self.most_work)

    @property
    def spacing(self) -> int:
        """Steps from one state that stays to the next."""
        return self.schedule.spacing if self.training and not self.schedule.keep else 1

    def state_slot(self, step: int) -> int:
        """Which of the `states` buffers holds a step's state: its own, or one of those that are used again."""
        whole, rest = divmod(step, self.spacing)
        if rest and step == self.shape.steps and self.supply.pool:
            return self.shape.steps // self.spacing + self.spacing  # the last goes into the pool at the end
        return whole if rest == 0 else self.shape.steps // self.spacing + rest

    def word_slot(self, step: int) -> int:
        """Which of the `words` buffers holds a step's hard state; in training only the start stays."""
        return step if step == 0 or not self.training else 2 - step % 2

    def buffer_counts(self) -> dict[str, int]:
        """How many buffers of a name there are, where not one."""
        steps = self.shape.steps
        last = self.state_slot(steps) + 1
        counts = {"states": max(last, steps // self.spacing + self.spacing)}
        if self.training:
            counts["d_rows"] = 2
        if self.schedule.keep:
            counts["kept"] = steps
        if self.groups:
            counts["words"] = 1 + (min(steps, 2) if self.training else steps)
        return counts

    def buffer_bytes(self) -> dict[str, int]:
        """Bytes of each storage buffer; of some there are several, see `buffer_counts`."""
        layout, shape, each = self.layout, self.shape, self.models
        chunk_bytes = CHUNK * 4
        masks = each * shape.steps * shape.cells_per_grid * 4 if self.asynchronous else 4
        sizes = {
            "wires": each * layout.instances * 8,
            "logits": each * layout.gates * 64,
            "coefficients": each * layout.gates * 16,
            "gate_ids": each * layout.gates * 4,
            "masks": masks,
            "states": each * self.chunks * shape.channels * chunk_bytes,
            "scratch": self._scratch_chunks() * chunk_bytes,
        }
        if self.schedule.keep:
            kept = each * self.chunks * self.nodes
            # in whole chunks, as which the backward pass reads either
            sizes["kept"] = _round_up(kept * HALF_BYTES, chunk_bytes) if shape.half else kept * chunk_bytes
        if not (self.schedule.keep and shape.half):
            sizes["nothing"] = 4
        if self.training:
            sizes |= {
                "edges": each * (layout.instances + layout.patch_nodes) * 32,
                "place_of": each * layout.instances * 4,
                "mu": each * layout.gates * 64,
                "nu": each * layout.gates * 64,
                "gradients": each * layout.gates * 64,
                "control": each * 32,
                "history": each * HISTORY * 8,
                "targets": each * self.chunks * shape.loss_channels * chunk_bytes,
                "loss_partials": each * len(shape.judged_steps) * self.chunks * 4,
                "d_rows": each * self.chunks * 3 * shape.channels * self.window * 4,
                "partials": each * self.blocks * layout.instances * 16,
            }
        if self.groups:
            sizes |= {
                "hard_masks": masks,
                "words": each * self.hard_chunks * shape.channels * chunk_bytes,
                "hard_targets": each * self.groups * shape.cells_per_grid * shape.loss_channels * 4,
                "counts": each * self.groups * 8,
            }
        if shape.damage_steps:
            sizes["corners"] = each * len(shape.damage_steps) * self.corner_samples * 8
        return sizes | (self._supply_bytes() if self.training else {})

    def _supply_bytes(self) -> dict[str, int]:
        """Buffers of what not every task asks for."""
        shape, each, sizes = self.shape, self.models, {}
        chunk_bytes = CHUNK * 4
        if (judged := len(shape.judged_steps)) > 1:
            sizes["d_judged"] = each * (judged - 1) * self.chunks * shape.loss_channels * chunk_bytes
        if self.supply.start not in ("random", "boards"):
            sizes["same"] = shape.cells_per_grid * shape.channels * 4
        if self.supply.ruled:
            sizes["rule"] = RULE_ENTRIES * 4
        if self.supply.pool:
            sizes |= {
                "pool": each * self.supply.pool * self.grid_words * 4,
                "fresh": each * self.chunks * shape.channels * chunk_bytes,
                "places": each * shape.batch * 4,
                "sample_losses": each * shape.batch * 4,
            }
        return sizes

    def _scratch_chunks(self) -> int:
        """What the fused steps use in turn: forward nodes, backward slots (and nodes), hard nodes."""
        lanes, nodes = self.schedule.lanes, self.nodes
        users = [0 if self.keeps_as_is else self.forward_groups * nodes]
        if self.training:
            users.append(self.backward_groups * self._backward_width)
        if self.groups:
            users.append(self.hard_groups * nodes)
        return lanes * max(users)

    def affordable(self, max_memory: int | None) -> float:
        """Bytes that this plan may need: the user's limit, or what is fair before memory is saved at a cost."""
        if max_memory is not None:
            return max_memory
        if not self.training:
            return math.inf
        return self.keep_bytes if self.schedule.keep else STATES_BYTES

    def may_run(self, schedule: Schedule, max_memory: int | None, groups: int = 1) -> bool:
        """Whether this work may run under another schedule: in the same memory plan, within the memory of `groups`."""
        if schedule.memory != self.schedule.memory:
            return False
        allowed = self.affordable(None if max_memory is None else max_memory // groups)
        return replace(self, schedule=schedule).total_bytes() <= max(self.total_bytes(), allowed)

    def total_bytes(self) -> int:
        """Device memory in storage buffers."""
        counts = self.buffer_counts()
        return sum(size * counts.get(name, 1) for name, size in self.buffer_bytes().items())

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
    return schedule.wg_of(kernel) if kernel in TILED else LINEAR_WG


def constants_of(spec: KernelSpec, schedule: Schedule, half: bool, trees: bool) -> dict[str, int]:
    """The `override` constants of a kernel."""
    wg = wg_size(spec.name, schedule)
    constants = {"WG": wg, "LANES": schedule.lanes, "KEEP": int(schedule.keep), "HALF": int(half), "TREES": int(trees)}
    return {name: constants[name] for name in spec.overrides}


def make_plan(
    adapter: Adapter,
    limits: Mapping[str, int],
    wirings: Sequence[Wiring],
    shape: Shape,
    probes: int = 0,
    hard_batch: int = 0,
    schedule: Schedule | None = None,
    training: bool = True,
    max_memory: int | None = None,
    asynchronous: bool = True,
    supply: Supply | None = None,
    groups: int = 1,
) -> Plan:
    """The first schedule of the adapter's kind that the device can run within `max_memory` bytes.

    Without a limit from the user, the first that needs a fair amount, else the one that needs least. `groups`: so many
    such plans share the memory.
    Raises LimitError where none does: for the memory, naming the smallest that works, or for the last one tried.
    """
    failure: LimitError | None = None
    smallest: Plan | None = None
    work = SOFTWARE_WORK if adapter.software else HARDWARE_WORK
    for candidate in _candidates(adapter, schedule, training, shape.steps):
        plan = Plan(
            tuple(wirings),
            shape,
            candidate,
            probes,
            hard_batch,
            training,
            asynchronous,
            work,
            supply or Supply(),
            _keepable(adapter) // groups,
        )
        plan = _within_loops(plan) if adapter.limits_loops else plan
        try:
            plan.check(limits, adapter.limits_loops)
        except LimitError as error:
            failure = error
            continue
        if plan.total_bytes() <= plan.affordable(None if max_memory is None else max_memory // groups):
            return plan
        if smallest is None or plan.total_bytes() < smallest.total_bytes():
            smallest = plan
    if smallest is None:
        assert failure is not None
        raise failure
    if max_memory is not None:
        needed = groups * smallest.total_bytes()
        parts = f" in {groups} groups of models" if groups > 1 else ""
        raise LimitError(
            f"The smallest plan needs {needed / 1e6:.1f} MB{parts}, but --max-memory allows {max_memory / 1e6:.1f} MB: "
            f"allow at least {math.ceil(needed / 1e5) / 10} MB, or use a smaller grid, batch or circuit."
        )
    return smallest


def _keepable(adapter: Adapter) -> int:
    """Bytes that a plan that keeps nodes may need, where the user does not say."""
    return max(KEEP_BYTES, (physical_memory() or 0) // KEEP_SHARE) if adapter.software else KEEP_BYTES


def _candidates(adapter: Adapter, schedule: Schedule | None, training: bool, steps: int) -> list[Schedule]:
    """Schedules to try, best first; a rollout alone has nothing to keep nodes for."""
    kind = (schedule,) if schedule else SOFTWARE if adapter.software else HARDWARE
    if not training:
        return [each.with_memory(keep=False) for each in kind]
    if schedule is not None:
        return [schedule]
    spacings = spacings_of(steps)
    return [
        each.with_memory(*memory)
        for each in kind
        for memory in [(True, 1), *((False, spacing) for spacing in spacings)]
    ]


def spacings_of(steps: int) -> list[int]:
    """Distances between kept states that are worth it: each needs less memory than every smaller one."""
    worth: list[int] = []
    fewest = steps + 2
    for spacing in range(1, steps + 1):
        if (buffers := steps // spacing + spacing) < fewest:
            worth.append(spacing)
            fewest = buffers
    return worth


def _within_loops(plan: Plan) -> Plan:
    """With dispatches so short that no invocation's loops are cut, as far as that helps."""
    while (trips := plan.loop_trips()) > LOOP_BUDGET and plan.most_work > 1:
        plan = replace(plan, most_work=max(1, plan.most_work // -(-trips // LOOP_BUDGET)))
    return plan


def _chunks(cells: int) -> int:
    return -(-cells // CHUNK)


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


def _power_of_two(at_least: int) -> int:
    return 1 << math.ceil(math.log2(max(1, at_least)))
