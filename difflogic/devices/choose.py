"""Where a new run is trained under `--engine auto`: measured, remembered, or as the policy says."""

from __future__ import annotations

from dataclasses import replace

from difflogic.config.choices import Policy
from difflogic.config.schema import Config
from difflogic.devices import open as placement
from difflogic.devices import placement_memory
from difflogic.devices.open import Placement
from difflogic.devices.race import Challenger, Contest, Decision
from difflogic.engine.api import Engine
from difflogic.errors import DeviceError, UsageError

COMPILED_SECONDS, COMPILING_SECONDS = 1.0, 20.0
"""About what opening the CPU engine takes: loading Numba, and its compiler on first use."""


def place_run(config: Config, population: int, policy: Policy = "auto", require_hardware: bool = False) -> Placement:
    """Choose for a new run, among adapters that passed the self-test.

    `auto`: where there is a hardware GPU, what was found faster for this shape on this machine, else both it and
    the CPU engine are measured over the first epochs. `gpu`, `cpu`: the hardware GPU (the CPU engine where there is
    none), the CPU engine. `sticky`: where the last run of this shape was; where there was none, as `gpu`.
    Nothing but hardware under `require_hardware`, and no contest for a precision that only the GPU has. Raises
    UsageError, NoAdapterError and other DeviceErrors.
    """
    if policy == "cpu":
        if require_hardware:
            raise UsageError("--policy cpu means the CPU engine, but --require-hardware was given too: drop one.")
        return Placement(placement.place("cpu").engine, "auto", "the policy is cpu")
    if policy == "sticky" and (again := _where_it_was(config, population, require_hardware)) is not None:
        return again
    found = placement.place("auto", require_hardware, trusted=True)
    info = found.engine.info
    if policy != "auto" or info.engine != "gpu" or info.software or require_hardware or config.train.half:
        return found
    return _remembered(found, config, population) or _contest(found, config, population)


def _where_it_was(config: Config, population: int, require_hardware: bool) -> Placement | None:
    last = placement_memory.last(config, population)
    if last is None or ((require_hardware or config.train.half) and last.engine != "gpu"):
        return None
    try:
        again = placement.place(last.selector, require_hardware, trusted=True)
    except DeviceError:  # it is gone, or not to be trusted now
        return None
    return replace(again, selector="auto", reason="the last run of this shape was on it")


def _remembered(gpu: Placement, config: Config, population: int) -> Placement | None:
    place = placement_memory.measured(gpu.engine.info, config, population)
    if place is None:
        return None
    reason = f"found on an earlier run of this shape: {place.why}"
    if place.engine == "gpu":
        return replace(gpu, reason=reason)
    try:
        return Placement(placement.place(place.engine).engine, "auto", reason)
    except DeviceError:
        return None


def _contest(gpu: Placement, config: Config, population: int) -> Placement:
    info = gpu.engine.info

    def decided(decision: Decision) -> None:
        placement_memory.keep_measured(info, config, population, decision)

    challenger = Challenger("the CPU engine", _open_cpu, _cpu_opening_seconds)
    reason = f"{gpu.reason}, and measures the first epochs on it and on the CPU engine"
    return Placement(Contest(gpu.engine, challenger, decided), "auto", reason)


def _open_cpu() -> Engine:
    return placement.place("cpu").engine


def _cpu_opening_seconds() -> float:
    try:
        from difflogic.cpu.codegen.compiled import is_cached
    except ImportError:  # opening it will say so
        return 0.0
    return COMPILED_SECONDS if is_cached() else COMPILING_SECONDS
