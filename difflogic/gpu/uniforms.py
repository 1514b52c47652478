"""The uniform blocks, byte for byte as `shaders/common/shape.wgsl` declares them."""

from __future__ import annotations

import struct

import numpy as np

from difflogic.gpu.plan import HISTORY, MAX_LEVELS, Plan
from difflogic.shape import Hyper

AT_STRIDE = 256
"""Bytes between the steps' `At` blocks: the portable alignment of a uniform binding."""


def shape_bytes(plan: Plan, hyper: Hyper, fire_rate: float, hard: bool = False) -> bytes:
    """The `Shape` uniform; `hard` describes the packed words instead of the soft batch."""
    shape, layout = plan.shape, plan.layout
    batch = plan.groups if hard else shape.batch
    words = (
        *(batch, shape.height, shape.width, shape.channels),
        *(batch * shape.cells_per_grid, plan.hard_chunks if hard else plan.chunks, shape.steps, shape.periodic),
        *(layout.patch_nodes, layout.nodes, layout.instances, layout.gates),
        *(len(layout.levels), plan.slots, shape.loss_channels, fire_rate < 1),
        *(plan.blocks, plan.chunks_per_block, HISTORY, plan.hard_batch),
        *(plan.probes, plan.probe_groups),
    )
    reals = (fire_rate, hyper.lr, hyper.weight_decay, hyper.beta1, hyper.beta2, hyper.epsilon, hyper.clip)
    table = np.zeros((MAX_LEVELS, 4), dtype=np.uint32)
    for row, level in zip(table, layout.levels, strict=False):
        row[:] = (level.first_instance, level.count, level.first_gate, level.replicas)
    return struct.pack(f"<{len(words)}I{len(reals)}f3I", *words, *reals, plan.models, 0, 0) + table.tobytes()


def at_bytes(steps: int) -> bytes:
    """The `At` uniforms of every step, `AT_STRIDE` apart."""
    blocks = np.zeros((steps, AT_STRIDE // 4), dtype=np.uint32)
    blocks[:, 0] = np.arange(steps)
    return blocks.tobytes()
