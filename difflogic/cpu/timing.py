"""How long each phase of a train step takes, by the host's clock."""

from __future__ import annotations

import time
from itertools import groupby

import numpy as np

from difflogic.cpu import phases
from difflogic.cpu.model import CpuModel

STEPS = (phases.FORWARD, phases.BACKWARD)
"""Kinds that are one phase per CA step."""


def time_phases(model: CpuModel) -> list[tuple[str, int, float]]:
    """`(name, CA steps or 1, seconds)` of the phases of one train step, which is really done."""
    times = []
    for name, run in groupby(model.epoch, key=lambda phase: phases.NAMES[phase[0]]):
        part = np.array(list(run))
        begin = time.perf_counter()
        model.work.run(part)
        times.append((name, len(part) if part[0, 0] in STEPS else 1, time.perf_counter() - begin))
    return times
