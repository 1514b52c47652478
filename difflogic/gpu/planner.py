"""Which plan a piece of work gets: the first launch configuration that the device can run within its memory.

Everything is decided and checked here, before a buffer or a pipeline exists.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from difflogic.engine.shape import Shape
from difflogic.errors import LimitError
from difflogic.gpu.adapter import Adapter
from difflogic.gpu.kernels import KERNELS
from difflogic.gpu.launch import HARDWARE, SOFTWARE, LaunchConfig
from difflogic.gpu.plan import HARDWARE_WORK, KEEP_BYTES, MAX_LEVELS, BatchSource, Plan
from difflogic.gpu.wiring import Wiring
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
