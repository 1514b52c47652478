"""Table of the training and evaluation kernels: bindings in order, dispatch grids and constants."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from difflogic.gpu.launch import LINEAR_WG, LaunchConfig
from difflogic.gpu.plan import CHUNK, MAX_WORKGROUPS, Plan

Access = Literal["uniform", "read", "read_write"]


@dataclass(frozen=True)
class Binding:
    """Binding (`@binding`) of a kernel; its number is its index in the kernel's list of bindings."""

    name: str
    access: Access


def bindings(uniforms: str, reads: str, writes: str) -> tuple[Binding, ...]:
    """Return a kernel's bindings from space-separated names of uniforms, of read-only and of writable buffers."""
    by_access: dict[Access, str] = {"uniform": uniforms, "read": reads, "read_write": writes}
    return tuple(Binding(name, access) for access, names in by_access.items() for name in names.split())


class DispatchRange(NamedTuple):
    """Range of a dispatch: tiles `[first, end)`, and chunks `[first_part, end_part)` of each block in these tiles.

    The dispatch binds the patch adjoints from chunk `window` on; chunks are numbered over all models.
    """

    first: int
    end: int
    first_part: int = 0
    end_part: int = 1
    window: int = 0

    @property
    def tiles(self) -> int:
        return self.end - self.first

    @property
    def parts(self) -> int:
        return self.end_part - self.first_part


@dataclass(frozen=True)
class Linear:
    """Dispatch grid over a list of independent items per model; `workgroup_id.y` is the model's index.

    If a dimension allows fewer workgroups than needed, those that are dispatched loop over the items.
    """

    items: Callable[[Plan], int]
    per_workgroup: int = LINEAR_WG
    """Number of items per workgroup; 1 if all invocations of a workgroup cooperate on an item."""

    def workgroups(self, plan: Plan) -> int:
        return min(-(-self.items(plan) // self.per_workgroup), MAX_WORKGROUPS)


@dataclass(frozen=True)
class Tiled:
    """Dispatch grid of a fused step: workgroups loop over the tiles (LANES chunks or blocks) of all models."""

    tiles: Callable[[Plan], int]
    workgroups: Callable[[Plan], int]
    """Maximum number of workgroups, which is limited because each may have separate scratch memory."""
    work: Callable[[Plan], int]
    """Number of gate evaluations per tile or, if tiles consist of blocks, per part (one chunk of each block)."""
    parts: Callable[[Plan], int] = lambda plan: 1
    """Number of chunks per block, or 1 if tiles do not consist of blocks."""
    window: Callable[[Plan], int] | None = None
    """Maximum number of tiles whose results one dispatch can bind, or None for no limit."""

    def ranges(self, plan: Plan) -> list[DispatchRange]:
        """Return the ranges of the dispatches of one CA step, window by window."""
        tiles = self.tiles(plan)
        each = self.window(plan) if self.window else tiles
        made = []
        for first in range(0, tiles, max(1, each)):
            spans = cut_ranges(min(each, tiles - first), self.parts(plan), self.work(plan), plan.most_work)
            window = first * plan.tile_chunks
            made += [span._replace(first=first + span.first, end=first + span.end, window=window) for span in spans]
        return made


def windows(plan: Plan) -> list[DispatchRange]:
    """Return consecutive ranges of all models' chunks; the patch adjoints of each range fit into one binding."""
    chunks, each = plan.models * plan.chunks, plan.window_tiles * plan.tile_chunks
    return [DispatchRange(first, min(first + each, chunks)) for first in range(0, chunks, each)]


def cut_ranges(tiles: int, parts: int, work: int, most: int) -> list[DispatchRange]:
    """Split all tiles and parts into ranges with a work of at most `most`; one part of one tile costs `work`.

    Parts are split before tiles, since many tiles fill a device better than few. A single part is never divided.
    """
    # Example: four tiles of 8 parts with a work of 10 each. At most 100 per dispatch gives parts 0-1, 2-3, 4-5 and 6-7
    # of all tiles; at most 25 gives one part of two tiles, 16 dispatches. A tile's parts stay in order for its sum.
    every_tile = most // (max(1, tiles) * work)
    by_part = _cut(parts, max(1, every_tile))
    by_tile = _cut(tiles, tiles if every_tile else max(1, most // work))
    return [DispatchRange(first, end, *part) for part in by_part for first, end in by_tile]


def _cut(items: int, most: int) -> list[tuple[int, int]]:
    """Split `items` items into nearly equal pieces of at most `most`; return their ranges `(first, end)`."""
    count = max(1, -(-items // max(1, most)))
    return list(itertools.pairwise(items * piece // count for piece in range(count + 1)))


@dataclass(frozen=True)
class KernelSpec:
    """Kernel in `shaders/<name>.wgsl`, with bindings, dispatch grid, `override` constants and workgroup memory."""

    name: str
    bindings: tuple[Binding, ...]
    grid: Linear | Tiled
    overrides: tuple[str, ...] = ("WG",)
    workgroup_bytes_per_invocation: int = 0

    @property
    def storage_buffers(self) -> int:
        return sum(binding.access != "uniform" for binding in self.bindings)

    def workgroup_size(self, launch: LaunchConfig) -> int:
        return launch.workgroup_size_of(self.name) if isinstance(self.grid, Tiled) else LINEAR_WG

    def near_bytes(self, plan: Plan) -> int:
        """Return the size in bytes of the workgroup memory that passes nodes and adjoints between levels."""
        return 16 * plan.near(self.name) if isinstance(self.grid, Tiled) else 0

    def constants(self, plan: Plan) -> dict[str, int]:
        """Return the values of this kernel's `override` constants for a plan, by name."""
        launch = plan.launch
        given = {
            "WG": self.workgroup_size(launch),
            "LANES": launch.chunks_per_workgroup,
            "SPLIT": launch.split_chunks,
            "QUARTERS": launch.quarters,
            "NEAR": plan.near(self.name),
            "KEEP": launch.store_activations,
            "TREES": plan.trees,
            "PERCEIVES": plan.perceives,
            "CANDIDATES": plan.layout.candidates,
        }
        return {name: int(given[name]) for name in self.overrides}


def _chunks(plan: Plan) -> int:
    return plan.chunks


def _parameters(plan: Plan) -> int:
    return plan.layout.parameters


_ALL_OVERRIDES = ("CANDIDATES", "KEEP", "SPLIT", "QUARTERS", "WG", "LANES", "NEAR", "TREES", "PERCEIVES")
_ROWS = ("WG", "CANDIDATES")
_ONE_WORKGROUP = Linear(lambda _: 1, per_workgroup=1)

# In the order of a train step, then an evaluation. Kernels of one workgroup add up a model's values in a fixed tree.
_SPECS = (
    KernelSpec("coefficients", bindings("shape", "logits", "coefficients gate_ids"), Linear(_parameters), _ROWS),
    KernelSpec("harden", bindings("shape", "control logits", "coefficients"), Linear(_parameters), _ROWS),
    KernelSpec("seed_grid", bindings("shape", "control", "state"), Linear(lambda plan: -(-plan.state_values // 2))),
    KernelSpec("seed_boards", bindings("shape", "control", "state"), Linear(lambda plan: plan.shape.cells)),
    KernelSpec("same_start", bindings("shape", "same", "state"), Linear(lambda plan: plan.state_values)),
    KernelSpec("draw_pool", bindings("shape", "control pool", "state places"), Linear(lambda plan: plan.pool_words)),
    KernelSpec(
        "draw_samples",
        bindings("shape", "control x y", "state targets"),
        Linear(lambda plan: plan.shape.batch * sum(plan.sample_words)),
    ),
    KernelSpec("rule_target", bindings("shape", "state rule", "targets"), Linear(lambda plan: plan.shape.cells)),
    KernelSpec(
        "draw_corners",
        bindings("shape", "control", "corners"),
        Linear(lambda plan: len(plan.shape.damage_steps) * plan.shape.batch),
    ),
    KernelSpec("draw_faults", bindings("shape", "control", "fault_keys"), Linear(lambda _: 1)),
    KernelSpec("faults", bindings("shape mark", "fault_keys listed", "state"), Linear(lambda plan: plan.state_values)),
    KernelSpec("damage", bindings("shape mark", "corners", "state"), Linear(lambda plan: plan.damaged_values)),
    KernelSpec(
        "fire_mask",
        bindings("shape", "control", "masks"),
        Linear(lambda plan: -(-plan.shape.cells_per_grid // 2) * plan.shape.steps),
    ),
    KernelSpec(
        "gate_forward",
        bindings("shape at", "wires coefficients masks state", "next_state values"),
        Tiled(lambda plan: plan.tiles(plan.chunks), lambda plan: plan.forward_groups, lambda plan: plan.tile_work),
        _ALL_OVERRIDES,
    ),
    KernelSpec("step_loss", bindings("shape mark", "state targets", "d_judged loss_partials"), Linear(_chunks)),
    KernelSpec(
        "loss",
        bindings("shape", "state targets", "d_patches loss_partials control"),
        Linear(_chunks, per_workgroup=1),
        workgroup_bytes_per_invocation=1,  # sixteen errors
    ),
    KernelSpec(
        "gate_backward",
        bindings("shape at", "edges coefficients masks kept d_next", "values d_patches partials"),
        Tiled(
            lambda plan: plan.tiles(plan.blocks),
            lambda plan: plan.backward_groups,
            lambda plan: plan.backward_work,
            lambda plan: plan.chunks_per_block,
            lambda plan: plan.window_tiles,
        ),
        _ALL_OVERRIDES,
    ),
    KernelSpec(
        "d_faults", bindings("shape mark", "fault_keys listed", "d_patches"), Linear(lambda plan: plan.state_values)
    ),
    KernelSpec("d_damage", bindings("shape mark", "corners", "d_patches"), Linear(lambda plan: plan.damaged_values)),
    KernelSpec(
        "step_loss_backward",
        bindings("shape mark", "d_judged", "d_patches"),
        Linear(lambda plan: plan.chunks * CHUNK * plan.shape.loss_channels),
    ),
    KernelSpec("d_start", bindings("shape at", "d_next", "d_start"), Linear(lambda plan: plan.state_values)),
    KernelSpec(
        # Eight invocations to a gate, each with a sum of four moments in workgroup memory.
        "gradients",
        bindings("shape", "partials logits", "gradients control"),
        Linear(lambda plan: plan.layout.gates * 8),
        overrides=_ROWS,
        workgroup_bytes_per_invocation=16,
    ),
    KernelSpec("clip_norm", bindings("shape", "", "gradients control"), _ONE_WORKGROUP, _ROWS[1:], 4),
    KernelSpec("commit", bindings("shape", "loss_partials", "control history"), _ONE_WORKGROUP, (), 4),
    KernelSpec(
        "adamw",
        bindings("shape", "control gradients", "logits mu nu coefficients gate_ids"),
        Linear(_parameters),
        _ROWS,
    ),
    KernelSpec(
        "sample_losses",
        bindings("shape", "state targets", "sample_losses"),
        Linear(lambda plan: plan.shape.batch, per_workgroup=1),
        overrides=(),
        workgroup_bytes_per_invocation=4,
    ),
    KernelSpec(
        "write_back",
        bindings("shape", "control state fresh sample_losses places", "pool"),
        Linear(lambda plan: plan.pool_words),
    ),
    KernelSpec(
        "pack",
        bindings("shape hard_shape", "state targets", "words hard_targets counts"),
        Linear(lambda plan: plan.hard_cells * (plan.shape.channels + plan.shape.targets * plan.shape.loss_channels)),
    ),
    KernelSpec("hard_damage", bindings("shape mark", "corners", "words"), Linear(lambda plan: plan.hard_cells)),
    KernelSpec(
        "hard_faults",
        bindings("shape mark", "fault_keys listed", "words"),
        Linear(lambda plan: plan.hard_cells * plan.shape.channels),
    ),
    KernelSpec(
        "hard_forward",
        bindings("shape at", "wires gate_ids masks words", "next_words values"),
        Tiled(lambda plan: plan.tiles(plan.hard_chunks), lambda plan: plan.hard_groups, lambda plan: plan.tile_work),
        tuple(name for name in _ALL_OVERRIDES if name != "KEEP"),
    ),
    KernelSpec(
        "hard_loss",
        bindings("shape mark", "words hard_targets", "counts"),
        Linear(lambda plan: plan.hard_cells * plan.shape.loss_channels),
    ),
)

KERNELS = {spec.name: spec for spec in _SPECS}

LINEAR = {spec.name: spec.grid for spec in _SPECS if isinstance(spec.grid, Linear)}
TILED = {spec.name: spec.grid for spec in _SPECS if isinstance(spec.grid, Tiled)}
"""Dispatch grids by kernel: TILED for the fused steps, LINEAR for all other kernels."""
