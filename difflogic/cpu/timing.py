"""How long each phase of a train step takes, by the host's clock."""

from __future__ import annotations

import time

from difflogic.cpu.model import CpuModel


def time_phases(model: CpuModel) -> list[tuple[str, int, float]]:
    """`(name, CA steps or 1, seconds)` of the phases of one train step, which is really done."""
    work = model._work
    steps = work.shape.steps
    spans = (
        ("prepare", 1),
        ("gate_forward", steps),
        ("gate_backward", steps),
        ("gradients", 1),
        ("commit", 1),
        ("adamw", 1),
    )
    times, first = [], 0
    for name, count in spans:
        begin = time.perf_counter()
        work.run(first, first + count, drawn=True)
        times.append((name, count, time.perf_counter() - begin))
        first += count
    return times
