"""The uniform blocks, byte for byte as `shaders/common/shape.wgsl` declares them."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from difflogic.gpu.plan import HISTORY, MAX_LEVELS, Plan
from difflogic.hardening import Hardening
from difflogic.shape import Hyper

AT_STRIDE = 256
"""Bytes between `At` blocks: the portable alignment of a uniform binding."""
AT_BYTES = 32
"""Bytes of an `At` block, rounded up."""


def shape_bytes(plan: Plan, hyper: Hyper, fire_rate: float, hardening: Hardening, hard: bool = False) -> bytes:
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
    counts = (plan.models, plan.window, *hardening, 0, 0)
    return struct.pack(f"<{len(words)}I{len(reals)}f{len(counts)}I", *words, *reals, *counts) + table.tobytes()


def at_bytes(rows: Sequence[tuple[int, ...]]) -> bytes:
    """The `At` uniforms of all dispatches of fused steps, `AT_STRIDE` apart: the step and its span."""
    blocks = np.zeros((len(rows), AT_STRIDE // 4), dtype=np.uint32)
    blocks[:, :5] = rows
    return blocks.tobytes()
