"""Every kernel: its bindings in order, what it is dispatched over and how it may be varied.

A test holds the WGSL and the twins to it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from difflogic.gpu.launch import LINEAR_WG, LaunchConfig
from difflogic.gpu.plan import CHUNK, MAX_WORKGROUPS, DispatchRange, Plan

Access = Literal["uniform", "read", "read_write"]


@dataclass(frozen=True)
class Binding:
    """One `@binding`, its number being its place in the list."""

    name: str
    access: Access


def uniform(name: str) -> Binding:
    """A small block that every invocation reads alike."""
    return Binding(name, "uniform")


def read(name: str) -> Binding:
    """A storage buffer that the kernel only reads."""
    return Binding(name, "read")


def read_write(name: str) -> Binding:
    """A storage buffer that the kernel writes, and may read."""
    return Binding(name, "read_write")


@dataclass(frozen=True)
class Linear:
    """A grid over a plain list of items, for each model anew: `workgroup_id.y` is the model.

    More workgroups than a dimension holds are not dispatched; those that are then loop over the rest. A 16x16 grid with
    8 channels and a batch of 2 has 4,096 values: 64 workgroups of 64 invocations zero them, an invocation to a value.
    """

    items: Callable[[Plan], int]
    per_workgroup: int = LINEAR_WG
    """1 where a whole workgroup goes through an item."""

    def workgroups(self, plan: Plan) -> int:
        return min(-(-self.items(plan) // self.per_workgroup), MAX_WORKGROUPS)


@dataclass(frozen=True)
class Tiled:
    """The grid of a fused step: workgroups go through the tiles of all models, a tile being LANES chunks or blocks."""

    tiles: Callable[[Plan], int]
    workgroups: Callable[[Plan], int]
    """At most; each may have scratch memory of its own."""
    work: Callable[[Plan], int]
    """Gate evaluations for one chunk of each lane."""
    parts: Callable[[Plan], int] = lambda plan: 1
    """Chunks of a block, where tiles are blocks."""

    def ranges(self, plan: Plan) -> list[DispatchRange]:
        """The dispatches that one CA step takes."""
        return cut_ranges(self.tiles(plan), self.parts(plan), self.work(plan), plan.most_work)


def cut_ranges(tiles: int, parts: int, work: int, most: int) -> list[DispatchRange]:
    """Ranges over all tiles and parts, in order, of at most `most` work each where one part of one tile is `work`.

    Parts are divided first: all tiles together fill a device better than a few. One part of one tile is never divided.
    """
    every_tile = most // (max(1, tiles) * work)
    by_part = _cut(parts, max(1, every_tile))
    by_tile = _cut(tiles, tiles if every_tile else max(1, most // work))
    return [DispatchRange(first, end, *part) for part in by_part for first, end in by_tile]


def _cut(items: int, most: int) -> list[tuple[int, int]]:
    """`[first, end)` of pieces of at most so many items, as even as can be."""
    count = max(1, -(-items // max(1, most)))
    return list(itertools.pairwise(items * piece // count for piece in range(count + 1)))


@dataclass(frozen=True)
class KernelSpec:
    """`shaders/<name>.wgsl`: its bindings, its grid, its `override` constants and its workgroup memory."""

    name: str
    bindings: tuple[Binding, ...]
    grid: Linear | Tiled
    overrides: tuple[str, ...] = ("WG",)
    workgroup_bytes_per_invocation: int = 0

    @property
    def storage_buffers(self) -> int:
        return sum(binding.access != "uniform" for binding in self.bindings)

    def workgroup_size(self, launch: LaunchConfig) -> int:
        """Invocations per workgroup."""
        return launch.workgroup_size_of(self.name) if isinstance(self.grid, Tiled) else LINEAR_WG

    def constants(self, launch: LaunchConfig, half: bool, trees: bool) -> dict[str, int]:
        """The `override` constants under a launch configuration."""
        given = {
            "WG": self.workgroup_size(launch),
            "LANES": launch.chunks_per_workgroup,
            "KEEP": launch.store_activations,
            "HALF": half,
            "TREES": trees,
        }
        return {name: int(given[name]) for name in self.overrides}


_SPECS = (
    KernelSpec(
        "coefficients",
        (uniform("shape"), read("logits"), read_write("coefficients"), read_write("gate_ids")),
        grid=Linear(lambda plan: plan.layout.gates),
    ),
    KernelSpec(
        "harden",
        (uniform("shape"), read("control"), read("logits"), read_write("coefficients")),
        grid=Linear(lambda plan: plan.layout.gates),
    ),
    KernelSpec(
        "seed_grid",
        (uniform("shape"), read("control"), read_write("state")),
        grid=Linear(lambda plan: -(-plan.state_values // 2)),
    ),
    KernelSpec(
        "seed_boards",
        (uniform("shape"), read("control"), read_write("state")),
        grid=Linear(lambda plan: plan.shape.cells),
    ),
    KernelSpec(
        "same_start", (uniform("shape"), read("same"), read_write("state")), grid=Linear(lambda plan: plan.state_values)
    ),
    KernelSpec(
        "draw_pool",
        (uniform("shape"), read("control"), read("pool"), read_write("state"), read_write("places")),
        grid=Linear(lambda plan: plan.pool_words),
    ),
    KernelSpec(
        "rule_target",
        (uniform("shape"), read("state"), read("rule"), read_write("targets")),
        grid=Linear(lambda plan: plan.shape.cells),
    ),
    KernelSpec(
        "draw_corners",
        (uniform("shape"), read("control"), read_write("corners")),
        grid=Linear(lambda plan: len(plan.shape.damage_steps) * plan.shape.batch),
    ),
    KernelSpec(
        "damage",
        (uniform("shape"), uniform("mark"), read("corners"), read_write("state")),
        grid=Linear(lambda plan: plan.damaged_values),
    ),
    KernelSpec(
        "fire_mask",
        (uniform("shape"), read("control"), read_write("masks")),
        grid=Linear(lambda plan: -(-plan.shape.cells_per_grid // 2) * plan.shape.steps),
    ),
    KernelSpec(
        "gate_forward",
        (
            uniform("shape"),
            uniform("at"),
            read("wires"),
            read("coefficients"),
            read("masks"),
            read("state"),
            read_write("next_state"),
            read_write("values"),
            read_write("kept"),
        ),
        grid=Tiled(lambda plan: plan.forward_tiles, lambda plan: plan.forward_groups, lambda plan: plan.tile_work),
        overrides=("WG", "LANES", "TREES", "KEEP", "HALF"),
    ),
    KernelSpec(
        "step_loss",
        (
            uniform("shape"),
            uniform("mark"),
            read("state"),
            read("targets"),
            read_write("d_judged"),
            read_write("loss_partials"),
        ),
        grid=Linear(lambda plan: plan.chunks),
    ),
    KernelSpec(
        "loss",
        (
            uniform("shape"),
            read("state"),
            read("targets"),
            read_write("d_rows"),
            read_write("loss_partials"),
            read_write("control"),
        ),
        grid=Linear(lambda plan: plan.chunks, per_workgroup=1),
    ),
    KernelSpec(
        "gate_backward",
        (
            uniform("shape"),
            uniform("at"),
            read("edges"),
            read("coefficients"),
            read("masks"),
            read("kept"),
            read("d_next"),
            read_write("values"),
            read_write("d_rows"),
            read_write("partials"),
        ),
        grid=Tiled(
            lambda plan: plan.backward_tiles,
            lambda plan: plan.backward_groups,
            lambda plan: plan.backward_work,
            lambda plan: plan.chunks_per_block,
        ),
        overrides=("WG", "LANES", "TREES", "KEEP", "HALF"),
        workgroup_bytes_per_invocation=16,
    ),
    KernelSpec(
        "d_damage",
        (uniform("shape"), uniform("mark"), read("corners"), read_write("d_rows")),
        grid=Linear(lambda plan: plan.damaged_values),
    ),
    KernelSpec(
        "step_loss_backward",
        (uniform("shape"), uniform("mark"), read("d_judged"), read_write("d_rows")),
        grid=Linear(lambda plan: plan.chunks * CHUNK * plan.shape.loss_channels),
    ),
    KernelSpec(
        "gradients",
        (
            uniform("shape"),
            read("partials"),
            read("logits"),
            read_write("gradients"),
            read_write("control"),
        ),
        grid=Linear(lambda plan: plan.layout.gates * 8),
        workgroup_bytes_per_invocation=16,
    ),
    KernelSpec(
        "clip_norm",
        (uniform("shape"), read_write("gradients"), read_write("control")),
        grid=Linear(lambda _: 1, per_workgroup=1),
        overrides=(),
        workgroup_bytes_per_invocation=4,
    ),
    KernelSpec(
        "commit",
        (uniform("shape"), read("loss_partials"), read_write("control"), read_write("history")),
        grid=Linear(lambda _: 1, per_workgroup=1),
        overrides=(),
        workgroup_bytes_per_invocation=4,
    ),
    KernelSpec(
        "adamw",
        (
            uniform("shape"),
            read("control"),
            read("gradients"),
            read_write("logits"),
            read_write("mu"),
            read_write("nu"),
            read_write("coefficients"),
            read_write("gate_ids"),
        ),
        grid=Linear(lambda plan: plan.layout.gates),
    ),
    KernelSpec(
        "sample_losses",
        (uniform("shape"), read("state"), read("targets"), read_write("sample_losses")),
        grid=Linear(lambda plan: plan.shape.batch, per_workgroup=1),
        overrides=(),
        workgroup_bytes_per_invocation=4,
    ),
    KernelSpec(
        "write_back",
        (
            uniform("shape"),
            read("control"),
            read("state"),
            read("fresh"),
            read("sample_losses"),
            read("places"),
            read_write("pool"),
        ),
        grid=Linear(lambda plan: plan.pool_words),
    ),
    KernelSpec(
        "pack",
        (
            uniform("shape"),
            uniform("hard_shape"),
            read("state"),
            read("targets"),
            read_write("words"),
            read_write("hard_targets"),
            read_write("counts"),
        ),
        grid=Linear(lambda plan: plan.hard_cells * (plan.shape.channels + plan.shape.loss_channels)),
    ),
    KernelSpec(
        "hard_damage",
        (uniform("shape"), uniform("mark"), read("corners"), read_write("words")),
        grid=Linear(lambda plan: plan.hard_cells),
    ),
    KernelSpec(
        "hard_forward",
        (
            uniform("shape"),
            uniform("at"),
            read("wires"),
            read("gate_ids"),
            read("masks"),
            read("words"),
            read_write("next_words"),
            read_write("hard_nodes"),
        ),
        grid=Tiled(lambda plan: plan.hard_tiles, lambda plan: plan.hard_groups, lambda plan: plan.tile_work),
        overrides=("WG", "LANES", "TREES"),
    ),
    KernelSpec(
        "hard_loss",
        (uniform("shape"), read("words"), read("hard_targets"), read_write("counts")),
        grid=Linear(lambda plan: plan.hard_cells * plan.shape.loss_channels),
    ),
)

KERNELS = {spec.name: spec for spec in _SPECS}

LINEAR = {spec.name: spec.grid for spec in _SPECS if isinstance(spec.grid, Linear)}
TILED = {spec.name: spec.grid for spec in _SPECS if isinstance(spec.grid, Tiled)}
"""The grids of the fused steps, and of all other kernels."""
