"""Which schedules tuning measures, and which of them not once others are known to be faster."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from difflogic.errors import LimitError
from difflogic.gpu.device import Device
from difflogic.gpu.launch import LaunchConfig
from difflogic.gpu.plan import Plan
from difflogic.gpu.planner import check
from difflogic.gpu.tuning_cache import Seconds

WORKGROUP_SIZES = (8, 16, 32, 64, 128, 256, 512)
SOFTWARE_LARGEST = 32
"""Software runs a workgroup on one thread, 4 to 16 invocations at a time: larger ones only take longer to compile."""
LANES = (1, 2, 4, 8, 16, 32)
HOPELESS = 1.5
"""So many times the best seconds: what goes further in the same direction would only be worse."""

Sweep = list[LaunchConfig]
"""Variants of the same lanes, which differ in workgroup size alone."""


def families(device: Device, plan: Plan, groups: int) -> list[list[Sweep]]:
    """All variants that the device can run and training would use, from few lanes to many, small workgroups to large.

    First those whose invocations have a chunk to themselves, then those where several share one and wait
    for each other.
    """
    largest = SOFTWARE_LARGEST if device.adapter.software else max(WORKGROUP_SIZES)
    found = []
    for alone in (True, False):
        family = []
        for lanes in LANES:
            sizes = [wg for wg in WORKGROUP_SIZES if lanes <= wg <= largest and (wg == lanes) == alone]
            sweep = [LaunchConfig(wg, lanes).with_memory(*plan.launch.memory) for wg in sizes]
            family.append([each for each in sweep if _fills(plan, each) and _fits(device, plan, groups, each)])
        found.append([sweep for sweep in family if sweep])
    return [family for family in found if family]


def best_of(times: Iterable[Seconds]) -> Seconds:
    """The least seconds of each kernel."""
    best: Seconds = {}
    for seconds in times:
        best = {kernel: min(each, best.get(kernel, each)) for kernel, each in seconds.items()}
    return best


def is_hopeless(seconds: Seconds, best: Seconds, kernels: Collection[str]) -> bool:
    """Whether all of these kernels take clearly longer than the best did."""
    return all(seconds[kernel] > HOPELESS * best[kernel] for kernel in kernels)


def _fills(plan: Plan, launch: LaunchConfig) -> bool:
    """Whether half as many lanes would not do: most of them are empty then. The default is measured anyway."""
    narrow = replace(
        plan,
        launch=replace(
            plan.launch, workgroup_size=1, chunks_per_workgroup=1, forward_workgroup_size=0, hard_workgroup_size=0
        ),
    )
    return launch.runs_as(plan.launch) or launch.chunks_per_workgroup // 2 < narrow.blocks


def _fits(device: Device, plan: Plan, groups: int, launch: LaunchConfig) -> bool:
    """Whether the device can run it, and training would."""
    try:
        check(replace(plan, launch=launch), device.limits)
    except LimitError:
        return False
    return plan.may_run(launch, None, groups)
