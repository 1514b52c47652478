"""Planner: choose the first launch configuration that the device can run within its memory."""

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from difflogic.engine.job import Job
from difflogic.engine.shape import Shape
from difflogic.errors import LimitError
from difflogic.gpu.adapter import Adapter
from difflogic.gpu.device import DeviceVerbs
from difflogic.gpu.kernels import KERNELS
from difflogic.gpu.launch import HARDWARE, SOFTWARE, LaunchConfig
from difflogic.gpu.plan import HARDWARE_WORK, KEEP_BYTES, BatchSource, Plan
from difflogic.gpu.uniforms import MAX_LEVELS
from difflogic.gpu.wiring import wired
from difflogic.model.layout import flat_layout
from difflogic.system.cache import warn
from difflogic.system.memory import physical_memory

T = TypeVar("T")

MAX_GATES = 65535 * 8
"""Maximum number of gates per dispatch of the kernel `gradients`, eight per workgroup."""
SAMPLES = ("x", "y")
"""Names of the buffers of data samples."""
CARD_KEEP_BYTES = 16 << 30
"""Value used instead of KEEP_BYTES on a card with dedicated memory, enough for a hundred checkerboards."""
KEEP_SHARE = 8
"""On software adapters, the machine's memory divided by this number is used instead of KEEP_BYTES."""
MANY_CHUNKS = 48
"""Minimum total number of chunks for smaller workgroups. On an H200 with 132 multiprocessors, these took 0.78
of the time for two checkerboards of 32 chunks each, and 0.66 for sixteen, but 1.2 for one."""
PAIRED_CHUNKS = 256
"""Minimum total number of chunks for two quarters per workgroup; derived from loaded bytes, not measured."""
SOFTWARE_WORK = 1 << 26
"""Maximum number of gate evaluations per dispatch on software adapters, about 60 ms on two cores."""


def make_plan(
    adapter: Adapter,
    limits: Mapping[str, int],
    work: Plan,
    launch: LaunchConfig | None = None,
    max_memory: int | None = None,
    reserved: int = 0,
) -> Plan:
    """Return `work` with the schedule `launch` or, if None, with the first of the adapter's kind that fits into memory.

    Other arguments are as in `plan_for`. Raises LimitError if no schedule fits; the message names the smallest
    sufficient memory or the problem of the last schedule.
    """
    keepable = CARD_KEEP_BYTES if adapter.type == "DiscreteGPU" else KEEP_BYTES
    if adapter.software:
        keepable = max(KEEP_BYTES, (physical_memory() or 0) // KEEP_SHARE)
    most_work = SOFTWARE_WORK if adapter.software else HARDWARE_WORK
    most_bytes = _most_bytes(limits)
    work = replace(work, most_work=most_work, keep_bytes=keepable // work.model_groups, most_bytes=most_bytes)
    runnable: list[Plan] = []
    failure = LimitError("No schedule fits this device: use a smaller grid, batch or circuit, or the CPU engine.")
    for candidate in _candidates(adapter, launch, work):
        plan = replace(work, launch=candidate)
        try:
            check(plan, limits)
        except LimitError as error:
            failure = error
            continue
        if plan.total_bytes() <= affordable(plan, None if max_memory is None else max_memory - reserved):
            return plan
        runnable.append(plan)
    if not runnable:
        raise failure
    # Without a limit from the user, try the smallest plan anyway: only an allocation reveals the free memory.
    smallest = min(runnable, key=Plan.total_bytes)
    if max_memory is None:
        return smallest
    needed = smallest.model_groups * smallest.total_bytes() + reserved
    parts = f" in {smallest.model_groups} groups of models" if smallest.model_groups > 1 else ""
    raise LimitError(
        f"The smallest plan needs {needed / 1e6:.1f} MB{parts}, but --max-memory allows {max_memory / 1e6:.1f} MB: "
        f"allow at least {math.ceil(needed / 1e5) / 10} MB, or use a smaller grid, batch or circuit."
    )


def affordable(plan: Plan, max_memory: int | None) -> float:
    """Return the bytes that a group of models may use; larger plans must save memory at the cost of time."""
    if max_memory is not None:
        return max_memory // plan.model_groups
    # Storing nodes saves a fifth of the backward pass; storing all states saves forward steps.
    return plan.keep_bytes if plan.training else math.inf


def may_run(plan: Plan, launch: LaunchConfig, max_memory: int | None = None) -> bool:
    """Return whether `plan` may use `launch`: its schedule stores the same values, and the memory suffices."""
    if launch.memory != plan.launch.memory:
        return False
    return replace(plan, launch=launch).total_bytes() <= max(plan.total_bytes(), affordable(plan, max_memory))


def open_within_memory(device: DeviceVerbs, plan: Plan, opener: Callable[[Plan], T]) -> T:
    """Return `opener(plan)`; if memory runs out, retry with the next schedule that needs less memory.

    Only an allocation shows the free memory of a device. A warning names the schedule in use.
    Raises LimitError if no schedule needs less memory.
    """
    while True:
        try:
            return opener(plan)
        except LimitError as error:
            megabytes, count = plan.model_groups * plan.total_bytes() / 1e6, len(plan.wirings)
            smaller = _with_less_memory(plan, device.limits)
            if smaller is None and count == 1:
                raise
            if smaller is None:
                raise LimitError(
                    f"{error} The {count} models of this population need {megabytes:.1f} MB in all, "
                    f"{megabytes / count:.1f} MB each: train fewer."
                ) from error
            spacing = smaller.launch.checkpoint_every
            kept = "all states" if spacing == 1 else f"one state in {spacing}"
            needed = smaller.model_groups * smaller.total_bytes() / 1e6
            warn(
                f"{device.adapter.name} has less than {megabytes:.1f} MB free: training stores {kept}, which takes "
                f"{needed:.1f} MB, and recomputes the gates' values in each backward step."
            )
        plan = smaller


def _with_less_memory(plan: Plan, limits: Mapping[str, int]) -> Plan | None:
    """Return `plan` changed to recompute nodes or store fewer states, or None if that does not save memory."""
    for spacing in checkpoint_distances(plan.shape.steps) if plan.training else ():
        # Larger distances need less memory. The first that saves memory recomputes the least.
        smaller = replace(plan, launch=plan.launch.with_memory(store_activations=False, checkpoint_every=spacing))
        if smaller.total_bytes() < plan.total_bytes() and fits(smaller, limits):
            return smaller
    return None


def fits(plan: Plan, limits: Mapping[str, int]) -> bool:
    """Return whether a device with these limits can run `plan`."""
    try:
        check(plan, limits)
    except LimitError:
        return False
    return True


def check(plan: Plan, limits: Mapping[str, int]) -> None:
    """Raise LimitError with the required and available amounts if a device with these limits cannot run `plan`."""
    # Limits of the circuit come first, since no schedule can help; then those that depend on the schedule.
    if len(plan.layout.levels) > MAX_LEVELS:
        raise LimitError(
            f"The circuit has {len(plan.layout.levels)} layers, but the GPU kernels support {MAX_LEVELS}: use "
            "fewer layers, or set `engine` to cpu."
        )
    if plan.layout.gates > MAX_GATES:
        raise LimitError(
            f"The circuit has {plan.layout.gates} gates, but the GPU kernels support {MAX_GATES}: use narrower "
            "layers, or set `engine` to cpu."
        )
    allowed = _most_bytes(limits)
    for name, size in plan.buffer_bytes().items():
        if size > allowed and name in SAMPLES:
            samples = plan.batch_source.samples
            raise LimitError(
                f"The {samples} samples need {size / 1e6:.1f} MB, but this device binds at most "
                f"{allowed / 1e6:.1f} MB: at most {samples * allowed // size} samples fit."
            )
        if size > allowed:
            raise LimitError(
                f"The buffer '{name}' needs {size / 1e6:.1f} MB, but this device binds at most "
                f"{allowed / 1e6:.1f} MB: use a smaller grid, batch or circuit."
            )
    if plan.models > limits["max-compute-workgroups-per-dimension"]:
        raise LimitError(f"Expected at most 65535 models at once, got {plan.models}: train fewer.")
    _check_kernels(plan, limits)
    if plan.launch.split_chunks and not all(wiring.reads_near for wiring in plan.wirings):
        raise LimitError(
            "split_chunks requires fixed wiring, and layers that read only the previous one: set it to false."
        )


def _most_bytes(limits: Mapping[str, int]) -> int:
    return min(limits["max-storage-buffer-binding-size"], limits["max-buffer-size"])


def _check_kernels(plan: Plan, limits: Mapping[str, int]) -> None:
    largest = min(limits["max-compute-invocations-per-workgroup"], limits["max-compute-workgroup-size-x"])
    for spec in KERNELS.values():
        wg = spec.workgroup_size(plan.launch)
        if wg > largest:
            raise LimitError(
                f"The kernel {spec.name} needs workgroups of {wg}, but the device allows {largest}: use the CPU engine."
            )
        buffers = sum(binding.access != "uniform" for binding in spec.source.bindings)
        if buffers > limits["max-storage-buffers-per-shader-stage"]:
            raise LimitError(
                f"The kernel {spec.name} binds {buffers} storage buffers, but this device allows "
                f"{limits['max-storage-buffers-per-shader-stage']}: use the CPU engine."
            )
        memory = spec.source.workgroup_bytes(spec.constants(plan))
        if memory > limits["max-compute-workgroup-storage-size"]:
            raise LimitError(
                f"The kernel {spec.name} needs {memory} bytes of workgroup memory, but this device has "
                f"{limits['max-compute-workgroup-storage-size']}: use the CPU engine."
            )


def _candidates(adapter: Adapter, launch: LaunchConfig | None, work: Plan) -> list[LaunchConfig]:
    """Return the schedules to try for `work`, best first; for rollouts, only schedules that store no nodes."""
    kind: Sequence[LaunchConfig] = (launch,) if launch else SOFTWARE if adapter.software else HARDWARE
    if kind is HARDWARE and work.models * work.chunks >= MANY_CHUNKS:
        smaller = replace(HARDWARE[0], workgroup_size=HARDWARE[0].workgroup_size // 2)
        paired = [replace(smaller, quarters=2)] if work.models * work.chunks >= PAIRED_CHUNKS else []
        kind = (*paired, smaller, *HARDWARE)
    if not work.training:
        return [each.with_memory(store_activations=False) for each in kind]
    if launch is not None:
        return [launch]
    memories = [(True, 1), *((False, spacing) for spacing in checkpoint_distances(work.shape.steps))]
    return [each.with_memory(*memory) for each in kind for memory in memories]


def checkpoint_distances(steps: int) -> list[int]:
    """Return the useful distances in steps between checkpointed states; each needs less memory than smaller ones."""
    # Checkpoints plus shared buffers are `steps // spacing + spacing`: 21, 12 and 9 for 20 steps. The best is near
    # the square root of the steps (Chen et al., *Training deep nets with sublinear memory cost*, 2016).
    worth: list[int] = []
    fewest = steps + 2
    for spacing in range(1, steps + 1):
        if (buffers := steps // spacing + spacing) < fewest:
            worth.append(spacing)
            fewest = buffers
    return worth


def plan_for(
    device: DeviceVerbs,
    jobs: Sequence[Job],
    launch: LaunchConfig | None = None,
    max_memory: int | None = None,
    reserved: int = 0,
) -> Plan:
    """Plan the training of equally shaped jobs in the fewest groups whose buffers the device can bind.

    Args:
        device: Device to plan for.
        jobs: One job per model.
        launch: The only schedule to try, or None to try all schedules of the adapter's kind.
        max_memory: User's limit in bytes for all groups, or None.
        reserved: Bytes of `max_memory` reserved for other work on the device.

    Returns:
        One plan for all models. `Plan.parts` returns the plans of the groups, which train alternately.

    Raises:
        LimitError: If the models do not fit; the message names the number of models that fit.
    """
    # For example, 14 checkerboards (9.4 MB of `partials` each) fit into a binding of 128 MiB: 64 need five groups.
    work, count = _work(jobs), len(jobs)

    def planned(models: int, groups: int, limit: int | None) -> Plan:
        part = replace(work, wirings=work.wirings[:models], model_groups=groups)
        return make_plan(device.adapter, device.limits, part, launch, limit, reserved)

    def is_refused(models: int, groups: int, limit: int | None = None) -> bool:
        try:
            planned(models, groups, limit)
        except LimitError:
            return True
        return False

    # The memory never shrinks with the number of models, of a group or in total, so bisection finds the limit.
    groups = 1 + bisect_left(range(1, count), True, key=lambda groups: not is_refused(count, groups))
    try:
        plan = planned(count, groups, max_memory)
    except LimitError as error:
        fitting = bisect_left(range(1, count), True, key=lambda models: is_refused(models, 1, max_memory))
        if not fitting:
            raise
        raise LimitError(
            f"{error} Only {fitting} of the {count} requested models fit: set `population` to {fitting}."
        ) from error
    memory = physical_memory() if device.adapter.software and max_memory is None else None
    needed = groups * plan.total_bytes()
    if memory is not None and needed > memory and count > 1:
        raise LimitError(
            f"A population of {count} needs {needed / 1e9:.1f} GB on {device.adapter.name}, but this machine has "
            f"{memory / 1e9:.1f} GB of memory: a `population` of at most {memory * count // needed} fits."
        )
    return plan


def _work(jobs: Sequence[Job]) -> Plan:
    """Return the plan for training `jobs` together, without a chosen schedule."""
    job, config = jobs[0], jobs[0].config
    return Plan(
        tuple(wired([flat_layout(each.circuit) for each in jobs])),
        Shape.training(job.circuit, config),
        probes=len(job.probes),
        hard_batch=config.train.batch,
        asynchronous=config.train.asynchronous,
        batch_source=BatchSource(
            config.task.start,
            job.rule is not None,
            config.pool.size,
            config.pool.reset,
            bool(config.pool.starts),
            0 if job.data is None else len(job.data),
            config.data.channels,
        ),
    )
