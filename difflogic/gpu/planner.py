"""Which plan a piece of work gets: the first launch configuration that the device can run within its memory.

Everything is decided and checked here, before a buffer or a pipeline exists.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from difflogic.engine.job import Job
from difflogic.engine.shape import Shape
from difflogic.errors import LimitError
from difflogic.gpu.adapter import Adapter
from difflogic.gpu.device import Device
from difflogic.gpu.kernels import KERNELS
from difflogic.gpu.launch import HARDWARE, SOFTWARE, LaunchConfig
from difflogic.gpu.plan import HARDWARE_WORK, KEEP_BYTES, MAX_LEVELS, BatchSource, Plan
from difflogic.gpu.wiring import Wiring, wired
from difflogic.model.layout import flat_layout
from difflogic.system.memory import physical_memory

MAX_GATES = 65535 * 8
"""Gates that one dispatch of `gradients` holds, eight to a workgroup."""
KEEP_SHARE = 8
"""On software, whose memory is the machine's, nodes may be kept within this fraction of it."""
SOFTWARE_WORK = 1 << 26
"""Gate evaluations of one dispatch at most on software: some 60 ms on two cores."""


def make_plan(
    adapter: Adapter,
    limits: Mapping[str, int],
    wirings: Sequence[Wiring],
    shape: Shape,
    probes: int = 0,
    hard_batch: int = 0,
    launch: LaunchConfig | None = None,
    training: bool = True,
    max_memory: int | None = None,
    asynchronous: bool = True,
    batch_source: BatchSource | None = None,
    groups: int = 1,
    reserved: int = 0,
) -> Plan:
    """The first schedule of the adapter's kind that the device can run within `max_memory` bytes.

    Without a limit from the user, the first that needs a fair amount, else the one that needs least. `groups`: so many
    such plans share the memory, and leave `reserved` bytes of it.
    Raises LimitError where none does: for the memory, naming the smallest that works, or for the last one tried.
    """
    failure = LimitError("There is no schedule to try.")
    smallest: Plan | None = None
    work = SOFTWARE_WORK if adapter.software else HARDWARE_WORK
    for candidate in _candidates(adapter, launch, training, shape.steps):
        plan = Plan(
            tuple(wirings),
            shape,
            candidate,
            probes,
            hard_batch,
            training,
            asynchronous,
            work,
            batch_source or BatchSource(),
            _keepable(adapter) // groups,
        )
        try:
            check(plan, limits)
        except LimitError as error:
            failure = error
            continue
        if plan.total_bytes() <= plan.affordable(None if max_memory is None else (max_memory - reserved) // groups):
            return plan
        if smallest is None or plan.total_bytes() < smallest.total_bytes():
            smallest = plan
    if smallest is None:
        raise failure
    if max_memory is not None:
        needed = groups * smallest.total_bytes() + reserved
        parts = f" in {groups} groups of models" if groups > 1 else ""
        raise LimitError(
            f"The smallest plan needs {needed / 1e6:.1f} MB{parts}, but --max-memory allows {max_memory / 1e6:.1f} MB: "
            f"allow at least {math.ceil(needed / 1e5) / 10} MB, or use a smaller grid, batch or circuit."
        )
    return smallest


def check(plan: Plan, limits: Mapping[str, int]) -> None:
    """Raises LimitError, naming what is asked and what the device has."""
    if len(plan.layout.levels) > MAX_LEVELS:
        raise LimitError(
            f"The circuit has {len(plan.layout.levels)} layers, but the GPU kernels hold {MAX_LEVELS}: use fewer "
            "layers, or --engine cpu."
        )
    if plan.layout.gates > MAX_GATES:
        raise LimitError(
            f"The circuit has {plan.layout.gates} gates, but the GPU kernels hold {MAX_GATES}: use narrower "
            "layers, or --engine cpu."
        )
    for name, size in plan.buffer_bytes().items():
        allowed = min(limits["max-storage-buffer-binding-size"], limits["max-buffer-size"])
        if size > allowed:
            raise LimitError(
                f"The buffer '{name}' needs {size / 1e6:.1f} MB, but this device binds at most "
                f"{allowed / 1e6:.1f} MB: use a smaller grid, batch or circuit."
            )
    if plan.models > limits["max-compute-workgroups-per-dimension"]:
        raise LimitError(f"{plan.models} models were asked for, but one dispatch holds 65535: train fewer at once.")
    _check_kernels(plan.launch, limits)


def _check_kernels(launch: LaunchConfig, limits: Mapping[str, int]) -> None:
    largest = min(limits["max-compute-invocations-per-workgroup"], limits["max-compute-workgroup-size-x"])
    for spec in KERNELS.values():
        wg = spec.workgroup_size(launch)
        if wg > largest:
            raise LimitError(f"The kernel {spec.name} needs workgroups of {wg}, but this device allows {largest}.")
        if spec.storage_buffers > limits["max-storage-buffers-per-shader-stage"]:
            raise LimitError(
                f"The kernel {spec.name} binds {spec.storage_buffers} storage buffers, but this device allows "
                f"{limits['max-storage-buffers-per-shader-stage']}."
            )
        memory = wg * spec.workgroup_bytes_per_invocation
        if memory > limits["max-compute-workgroup-storage-size"]:
            raise LimitError(
                f"The kernel {spec.name} needs {memory} bytes of workgroup memory, but this device has "
                f"{limits['max-compute-workgroup-storage-size']}."
            )


def _keepable(adapter: Adapter) -> int:
    """Bytes that a plan that keeps nodes may need, where the user does not say."""
    return max(KEEP_BYTES, (physical_memory() or 0) // KEEP_SHARE) if adapter.software else KEEP_BYTES


def _candidates(adapter: Adapter, launch: LaunchConfig | None, training: bool, steps: int) -> list[LaunchConfig]:
    """Schedules to try, best first; a rollout alone has nothing to keep nodes for."""
    kind = (launch,) if launch else SOFTWARE if adapter.software else HARDWARE
    if not training:
        return [each.with_memory(store_activations=False) for each in kind]
    if launch is not None:
        return [launch]
    spacings = checkpoint_distances(steps)
    return [
        each.with_memory(*memory)
        for each in kind
        for memory in [(True, 1), *((False, spacing) for spacing in spacings)]
    ]


def checkpoint_distances(steps: int) -> list[int]:
    """Distances between kept states that are worth it: each needs less memory than every smaller one."""
    worth: list[int] = []
    fewest = steps + 2
    for spacing in range(1, steps + 1):
        if (buffers := steps // spacing + spacing) < fewest:
            worth.append(spacing)
            fewest = buffers
    return worth


def plan_for(
    device: Device,
    jobs: Sequence[Job],
    launch: LaunchConfig | None = None,
    groups: int = 1,
    max_memory: int | None = None,
    reserved: int = 0,
) -> Plan:
    """The plan of these jobs, all of one shape, on a device; `groups`: so many such plans share `max_memory`.

    `reserved` bytes of that are left to rollouts beside them. Raises LimitError where none fits; it says how many
    models would.
    """
    wirings = wired([flat_layout(job.circuit) for job in jobs])
    make = partial(_plan, device, jobs[0], launch=launch, max_memory=max_memory, reserved=reserved)
    try:
        return make(wirings, groups=groups)
    except LimitError as error:
        raise _refusal(error, _most(make, wirings), len(jobs)) from error


def plan_in_groups(
    device: Device,
    jobs: Sequence[Job],
    launch: LaunchConfig | None = None,
    max_memory: int | None = None,
    reserved: int = 0,
) -> tuple[int, Plan]:
    """In how many groups, one after another, these jobs are trained, as few as can be; and the largest one's plan.

    The limits are those of `plan_for`. Raises LimitError where all groups together do not fit; it says how many models
    would.
    """
    wirings = wired([flat_layout(job.circuit) for job in jobs])
    bound = _most(partial(_plan, device, jobs[0], launch=launch), wirings)
    groups = -(-len(jobs) // bound) if bound else 1
    size = -(-len(jobs) // groups)
    make = partial(_plan, device, jobs[0], launch=launch, max_memory=max_memory, reserved=reserved)
    try:
        plan = make(wirings[:size], groups=groups)
    except LimitError as error:
        raise _refusal(error, _most(make, wirings), len(jobs)) from error
    memory = physical_memory() if device.adapter.software and max_memory is None else None
    needed = groups * plan.total_bytes()
    if memory is not None and needed > memory and len(jobs) > 1:
        raise LimitError(
            f"A population of {len(jobs)} needs {needed / 1e9:.1f} GB on {device.adapter.name}, but this machine has "
            f"{memory / 1e9:.1f} GB of memory: at most {memory * len(jobs) // needed} such models fit."
        )
    return groups, plan


def _refusal(error: LimitError, fitting: int, asked: int) -> LimitError:
    """What was refused, and how many models would not be."""
    if not fitting:
        return error
    return LimitError(f"{error} Of the {asked} models asked for, {fitting} fit at once: use --population {fitting}.")


def _most(make: Callable[[Sequence[Wiring]], Plan], wirings: Sequence[Wiring]) -> int:
    """How many models, from the first on, fit into the same dispatches; 0 where not even one does."""

    def refused(count: int) -> bool:
        try:
            make(wirings[:count])
        except LimitError:
            return True
        return False

    return bisect_left(range(1, len(wirings) + 1), True, key=refused)


def _plan(
    device: Device,
    job: Job,
    wirings: Sequence[Wiring],
    launch: LaunchConfig | None = None,
    max_memory: int | None = None,
    reserved: int = 0,
    groups: int = 1,
) -> Plan:
    config = job.config
    return make_plan(
        device.adapter,
        device.limits,
        wirings,
        Shape.training(job.circuit, job.config),
        probes=len(job.probes),
        hard_batch=config.train.batch,
        launch=launch,
        max_memory=max_memory,
        asynchronous=config.train.asynchronous,
        batch_source=BatchSource(config.task.start, job.rule is not None, config.pool.size, config.pool.reset),
        groups=groups,
        reserved=reserved,
    )
