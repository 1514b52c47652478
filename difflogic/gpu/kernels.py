"""Table of the training and evaluation kernels: dispatch grids and constants."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from difflogic.gpu.launch import LINEAR_WG, LaunchConfig
from difflogic.gpu.plan import CHUNK, MAX_WORKGROUPS, Plan
from difflogic.gpu.shaders import Source, load_source


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
    """Dispatch grid of a fused step: workgroups loop over all models' tiles, each of LANES chunks or blocks."""

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
    """Kernel in `shaders/<name>.wgsl`, which declares its bindings and `override` constants, and its dispatch grid."""

    name: str
    grid: Linear | Tiled

    @property
    def source(self) -> Source:
        return load_source(self.name)

    def workgroup_size(self, launch: LaunchConfig) -> int:
        return launch.workgroup_size_of(self.name) if isinstance(self.grid, Tiled) else LINEAR_WG

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
            "TREES": plan.wirings[0].trees,
            "PERCEIVES": plan.perceives,
            "CANDIDATES": plan.layout.candidates,
        }
        return {name: int(given[name]) for name in self.source.overrides}


_PARAMETERS = Linear(lambda plan: plan.layout.parameters)
_STATE = Linear(lambda plan: plan.shape.cells * plan.shape.channels)
_DAMAGED = Linear(lambda plan: plan.shape.batch * plan.damage_side**2 * plan.shape.channels)
_POOL_WORDS = Linear(lambda plan: plan.shape.batch * plan.grid_words)
_CELLS = Linear(lambda plan: plan.shape.cells)
_ONE_WORKGROUP = Linear(lambda _: 1)

# In the order of a train step, then of an evaluation. Kernels with one workgroup sum a model's values in a fixed order.
_GRIDS: dict[str, Linear | Tiled] = {
    "coefficients": _PARAMETERS,
    "harden": _PARAMETERS,
    "seed_grid": Linear(lambda plan: -(-plan.shape.cells * plan.shape.channels // 2)),
    "seed_boards": _CELLS,
    "same_start": _STATE,
    "draw_pool": _POOL_WORDS,
    "draw_samples": Linear(lambda plan: plan.shape.batch * sum(plan.sample_words)),
    "rule_target": _CELLS,
    "draw_corners": Linear(lambda plan: len(plan.shape.damage_steps) * plan.shape.batch),
    "draw_faults": _ONE_WORKGROUP,
    "faults": _STATE,
    "damage": _DAMAGED,
    "fire_mask": Linear(lambda plan: -(-plan.shape.cells_per_grid // 2) * plan.shape.steps),
    "gate_forward": Tiled(
        lambda plan: plan.tiles(plan.chunks), lambda plan: plan.forward_groups, lambda plan: plan.tile_work
    ),
    "step_loss": Linear(lambda plan: plan.chunks),
    "loss": Linear(lambda plan: plan.chunks, per_workgroup=1),
    "gate_backward": Tiled(
        lambda plan: plan.tiles(plan.blocks),
        lambda plan: plan.backward_groups,
        lambda plan: plan.backward_work,
        lambda plan: plan.chunks_per_block,
        lambda plan: plan.window_tiles,
    ),
    "d_faults": _STATE,
    "d_damage": _DAMAGED,
    "step_loss_backward": Linear(lambda plan: plan.chunks * CHUNK * plan.shape.loss_channels),
    "d_start": _STATE,
    "gradients": Linear(lambda plan: plan.layout.gates * 8),  # eight invocations to a gate
    "clip_norm": _ONE_WORKGROUP,
    "commit": _ONE_WORKGROUP,
    "adamw": _PARAMETERS,
    "sample_losses": Linear(lambda plan: plan.shape.batch, per_workgroup=1),
    "write_back": _POOL_WORDS,
    "pack": Linear(
        lambda plan: plan.hard_cells * (plan.shape.channels + plan.shape.targets * plan.shape.loss_channels)
    ),
    "hard_damage": Linear(lambda plan: plan.hard_cells),
    "hard_faults": Linear(lambda plan: plan.hard_cells * plan.shape.channels),
    "hard_forward": Tiled(
        lambda plan: plan.tiles(plan.hard_chunks), lambda plan: plan.hard_groups, lambda plan: plan.tile_work
    ),
    "hard_loss": Linear(lambda plan: plan.hard_cells * plan.shape.loss_channels),
}

KERNELS = {name: KernelSpec(name, grid) for name, grid in _GRIDS.items()}

LINEAR = {name: grid for name, grid in _GRIDS.items() if isinstance(grid, Linear)}
TILED = {name: grid for name, grid in _GRIDS.items() if isinstance(grid, Tiled)}
"""Dispatch grids by kernel: TILED for the fused steps, LINEAR for all other kernels."""
