"""How many rounds of its loops one invocation of each kernel makes at most, for drivers that cut long ones short.

A loop counts one more than its rounds: finding that it is over is a round too. Where a value depends on
the data, and where an invocation takes several items, the worst is taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from difflogic.gpu.trails import ENDS, Trails

if TYPE_CHECKING:
    from difflogic.gpu.plan import Plan

MOST_GROUPS = 65535
LINEAR_WG = 64
"""Workgroup size of the kernels over plain lists, where it matters little."""


def loop(rounds: int, each: int = 0) -> int:
    """Rounds of a loop whose every round costs `each` inside."""
    return rounds * (1 + each) + 1


_THREEFRY = loop(5, loop(4))
_SPLIT = 2 * _THREEFRY
_SIXTEEN = loop(16)


def loop_trips(plan: Plan) -> dict[str, int]:
    """The most rounds of one invocation in one dispatch, by kernel."""
    shape, layout = plan.shape, plan.layout
    half = -(-shape.cells_per_grid // 2)
    hard_items = plan.groups * shape.cells_per_grid
    pool_words = shape.batch * plan.grid_words
    side = min(shape.damage_side, max(shape.height, shape.width))
    damaged = shape.batch * side * side * shape.channels
    return {
        "coefficients": 4 * _SIXTEEN + _SIXTEEN,
        "harden": _SPLIT + 2 * _THREEFRY + 5 * _SIXTEEN,
        "seed_grid": 2 * _SPLIT + _linear(-(-shape.cells * shape.channels // 2), _THREEFRY),
        "seed_boards": 2 * _SPLIT + _linear(shape.cells, _THREEFRY),
        "same_start": _linear(shape.cells * shape.channels),
        "draw_pool": 3 * _SPLIT + _linear(pool_words, _THREEFRY + loop(32)),
        "rule_target": _linear(shape.cells, loop(9)),
        "draw_corners": _SPLIT + _THREEFRY + _linear(len(shape.damage_steps) * shape.batch, _THREEFRY),
        "damage": _linear(damaged),
        "d_damage": _linear(damaged, loop(3)),
        "hard_damage": _linear(hard_items, loop(32) + loop(shape.channels)),
        "judge": _linear(plan.chunks, loop(shape.loss_channels * 16)),
        "d_judge": _linear(plan.chunks * shape.loss_channels * 16),
        "sample_losses": loop(
            _rounds(shape.batch, 1, MOST_GROUPS),
            loop(-(-shape.cells_per_grid * shape.loss_channels // 64)) + loop(6),
        ),
        "write_back": _linear(pool_words, loop(shape.batch) + loop(32)),
        "fire_mask": _SPLIT + loop(shape.steps, _SPLIT) + _linear(half * shape.steps, 1 + _SPLIT + _THREEFRY),
        "gate_forward": _tiled(plan, "gate_forward", _forward(plan, "gate_forward")),
        "hard_forward": _tiled(plan, "hard_forward", _forward(plan, "hard_forward")),
        "gate_backward": _tiled(
            plan,
            "gate_backward",
            loop(
                max(span.parts for span in plan.spans("gate_backward")),
                _again(plan) + max(_backward(plan, trails) for trails in plan.trails),
            ),
        ),
        "loss": loop(
            _rounds(plan.chunks, 1, MOST_GROUPS),
            loop(-(-3 * shape.channels * plan.window // LINEAR_WG)) + loop(shape.loss_channels * 16),
        ),
        "gradients": loop(len(layout.levels))
        + loop(-(-plan.blocks // 8), loop(max(level.replicas for level in layout.levels)))
        + loop(3)
        + 6 * _SIXTEEN,
        "commit": loop(-(-plan.chunks // 64), loop(len(shape.judged_steps))) + loop(6) + 2 * _SPLIT,
        "adamw": 2 * loop(32) + 6 * _SIXTEEN,
        "pack": _linear(hard_items * (shape.channels + shape.loss_channels), loop(32)) + _linear(plan.groups),
        "hard_loss": _linear(hard_items * shape.loss_channels),
    }


def _linear(items: int, each: int = 0) -> int:
    """A kernel over a plain list."""
    return loop(_rounds(items, LINEAR_WG, MOST_GROUPS), each)


def _tiled(plan: Plan, kernel: str, each: int) -> int:
    """A fused step whose every tile costs `each`."""
    return loop(max(_rounds(span.tiles, 1, plan.groups_of(kernel)) for span in plan.spans(kernel)), each)


def _rounds(items: int, per_group: int, most_groups: int) -> int:
    """Rounds of a workgroup over what more than the most groups leave."""
    return -(-items // (per_group * most_groups))


def _share(items: int, workers: int) -> int:
    """Items of a chunk that fall to one of its workers."""
    return -(-items // workers)


def _quarters(workers: int) -> int:
    """Quarters of a chunk that one of its workers takes of an item: twin of `shaders/common/tile.wgsl`."""
    return 1 if workers >= 64 and workers % 4 == 0 else 4


def _forward(plan: Plan, kernel: str) -> int:
    """A chunk in gate_forward or hard_forward."""
    workers = plan.schedule.workers(kernel)
    codes = kernel == "gate_forward" and plan.schedule.keep and plan.shape.half
    return _evaluate(plan, workers) + loop(_share(plan.layout.channels * 16, workers)) + codes * _codes(plan, workers)


def _evaluate(plan: Plan, workers: int) -> int:
    """All nodes of a chunk: patches, trees, then level after level."""
    layout, after = plan.layout, plan.wirings[0].tree_levels
    row, quarters = layout.channels if workers == 1 else 1, _quarters(workers)
    items = 4 // quarters
    trees = layout.levels[after - 1].count // row * items if after else 0
    trees = loop(_share(trees, workers), loop(row, loop(quarters))) if after else 0
    levels = sum(1 + loop(_share(items * level.count, workers), loop(quarters)) for level in layout.levels[after:]) + 1
    return loop(_share(layout.patch_nodes * 4, workers), loop(4)) + trees + levels


def _again(plan: Plan) -> int:
    """What gate_backward computes again where no nodes are kept."""
    workers = plan.schedule.workers("gate_backward")
    return 0 if plan.schedule.keep else _evaluate(plan, workers) + plan.shape.half * (_codes(plan, workers) + 1)


def _codes(plan: Plan, workers: int) -> int:
    """All nodes of a chunk to 16 bits."""
    return loop(_share(plan.nodes, workers), 3 * loop(4))


def _backward(plan: Plan, trails: Trails) -> int:
    """A chunk in gate_backward: adjoints of the state, of every level, of the trees, of the patches' rows."""
    wiring, layout, after = trails.wiring, trails.wiring.layout, trails.wiring.tree_levels
    workers = plan.schedule.workers("gate_backward")
    quarters = _quarters(workers)
    items = 4 // quarters
    d_states = loop(4, loop(3))
    degree = np.diff(trails.fanout.astype(np.int64), axis=1)[:, 0]
    patches, instances = np.split(degree, [layout.patch_nodes])
    instances[-layout.channels :] = 1  # the slot that the adjoint of the state comes in
    total = loop(_share(layout.channels * 4, workers), d_states) + 1
    for level in layout.levels[after:]:
        slots = instances[level.first_instance - wiring.inner :][: level.count]
        if trails.long:
            ends = int((trails.gates[level.first_instance :][: level.count] >= ENDS).sum())
            total += 4 + 2 * ends + int((slots + 2).sum())
        else:
            total += 2 + _worst((slots + 6).repeat(items), workers)
    if after:
        roots = instances[: layout.levels[after - 1].count]
        total += 1 + _worst((4 + quarters * (roots + 2) + loop(7)).repeat(items), workers)
    if quarters == 1:
        total += 1 + _worst((patches + 2).repeat(items), workers)
    rows = patches.reshape(-1, 3).sum(axis=1) + 3 + 1 + loop(16)
    rows[1::3] += loop(4, d_states)
    return total + 1 + _worst(rows, workers)


def _worst(costs: npt.NDArray[Any], workers: int) -> int:
    """Items that all workers take side by side cost as much as the dearest: software runs them in lockstep."""
    padded = np.concatenate([costs, np.zeros(-len(costs) % workers, dtype=costs.dtype)])
    return int(padded.reshape(-1, workers).max(axis=1).sum())
