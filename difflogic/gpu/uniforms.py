"""The uniform blocks, byte for byte as `shaders/common/shape.wgsl` declares them."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from difflogic.gpu.plan import HISTORY, MAX_LEVELS, Plan
from difflogic.hardening import Hardening
from difflogic.shape import Hyper, Shape

AT_STRIDE = 256
"""Bytes between `At` blocks: the portable alignment of a uniform binding."""
AT_BYTES = 32
"""Bytes of an `At` block, rounded up."""
MARK_BYTES = 16
"""The same of a `Mark` block."""


def shape_bytes(plan: Plan, hyper: Hyper, fire_rate: float, hardening: Hardening, hard: bool = False) -> bytes:
    """The `Shape` uniform; `hard` describes the packed words instead of the soft batch."""
    shape, layout = plan.shape, plan.layout
    batch = plan.groups if hard else shape.batch
    words = (
        *(batch, shape.height, shape.width, shape.channels),
        *(batch * shape.cells_per_grid, plan.hard_chunks if hard else plan.chunks, shape.steps, shape.periodic),
        *(layout.patch_nodes, plan.nodes, layout.instances, layout.gates),
        *(len(layout.levels), plan.slots, shape.loss_channels, fire_rate < 1),
        *(plan.blocks, plan.chunks_per_block, HISTORY, plan.hard_batch),
        *(plan.probes, plan.probe_groups),
    )
    reals = (fire_rate, hyper.lr, hyper.weight_decay, hyper.beta1, hyper.beta2, hyper.epsilon, hyper.clip)
    more = (
        *(plan.models, plan.window, *hardening, len(shape.judged_steps)),
        *(len(shape.damage_steps), min(shape.damage_side, max(shape.height, shape.width))),
        *(plan.corner_samples, plan.supply.pool, plan.grid_words, plan.supply.resets, hyper.lr_from, hyper.lr_to),
    )
    trees = (plan.wirings[0].tree_levels, plan.wirings[0].inner, plan.follows_trails, 0)
    table = np.zeros((MAX_LEVELS, 4), dtype=np.uint32)
    for row, level in zip(table, layout.levels, strict=False):
        row[:] = (level.first_instance, level.count, level.first_gate, level.replicas)
    layout_of = f"<{len(words)}I{len(reals)}f{len(more)}If{len(trees)}I"
    return struct.pack(layout_of, *words, *reals, *more, hyper.lr_end, *trees) + table.tobytes()


def at_bytes(rows: Sequence[tuple[int, ...]]) -> bytes:
    """The `At` uniforms of all dispatches of fused steps, `AT_STRIDE` apart: the step and its span."""
    return _blocks(rows)


def mark_bytes(shape: Shape) -> bytes:
    """The `Mark` uniforms of all states, `AT_STRIDE` apart: places in the lists of damaged and judged ones, or 0."""
    lists = (shape.damage_steps, shape.judged_steps)
    return _blocks([tuple(_place(step, each) for each in lists) for step in range(shape.steps + 1)])


def _place(step: int, steps: tuple[int, ...]) -> int:
    return steps.index(step) if step in steps else 0


def _blocks(rows: Sequence[tuple[int, ...]]) -> bytes:
    blocks = np.zeros((len(rows), AT_STRIDE // 4), dtype=np.uint32)
    blocks[:, : len(rows[0])] = rows
    return blocks.tobytes()
