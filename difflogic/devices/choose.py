"""Choose the engine of a new run (`--engine auto`) by a benchmark, by earlier measurements, or by --placement.

`placement.json` in the user's cache stores earlier results: per machine, GPU and shape of a run, the engine that a run
or `difflogic bench` measured to be faster; per machine and shape, the engine that was used last.
"""

import os
import re
from dataclasses import asdict, replace
from functools import partial

from difflogic.config.choices import Placing
from difflogic.config.schema import Config
from difflogic.devices import open as devices
from difflogic.devices.open import Placement
from difflogic.devices.race import Candidate, Decision
from difflogic.engine.api import EngineInfo
from difflogic.errors import DeviceError, UsageError
from difflogic.system.cache import JsonCache, key_of
from difflogic.system.processor import processor_name
from difflogic.version import __version__

COMPILED_SECONDS, COMPILING_SECONDS = 1.0, 8.0
"""Approximate seconds for opening the CPU engine with and without compiled code in Numba's cache."""
PLACES = JsonCache("placement")


def place_run(config: Config, population: int, placing: Placing = "auto", require_hardware: bool = False) -> Placement:
    """Choose and open the engine of a new run; GPU adapters must pass the self-test.

    Args:
        config: Configuration of the run.
        population: Number of models that the run trains together.
        placing: `auto` chooses the engine that was measured to be faster for this shape; without a measurement, a
            hardware GPU and the CPU engine are compared in the first epochs. `gpu` chooses the hardware GPU, or the CPU
            engine if there is no such GPU. `cpu` chooses the CPU engine. `sticky` chooses the engine of the last run of
            this shape; without one, it acts like `gpu`.
        require_hardware: True to accept only hardware GPUs.

    Raises:
        UsageError: The arguments contradict each other.
        DeviceError: No adapter fits the arguments, or it cannot be used.
    """
    if placing == "cpu":
        if require_hardware:
            raise UsageError("--placement cpu cannot be combined with --require-hardware: omit one of the two.")
        return Placement(devices.open_engine("cpu"), "--placement cpu was given")
    if placing == "sticky" and (again := _where_it_was(config, population, require_hardware)) is not None:
        return again
    placement = devices.place("auto", require_hardware, trusted=True)
    info = placement.engine.info
    # A software adapter runs on the CPU too, more slowly than the CPU engine, so no measurement is needed.
    if placing != "auto" or info.engine != "gpu" or info.software or require_hardware:
        return placement
    return _remembered(placement, config, population) or replace(
        placement,
        reason=f"{placement.reason}, and measures the first epochs on it and on the CPU engine",
        candidate=Candidate("the CPU engine", partial(devices.open_engine, "cpu"), _cpu_opening_seconds),
    )


def keep_measured(gpu: EngineInfo, config: Config, population: int, decision: Decision) -> None:
    """Store the engine in `decision` for later runs of this shape if both the GPU and the CPU engine were timed."""
    if decision.compared:
        keep_faster(gpu, config, population, decision.engine, decision.reason)


def keep_faster(gpu: EngineInfo, config: Config, population: int, faster: EngineInfo, why: str) -> None:
    """Store the faster engine and the reason `why` for later runs of this shape with the same GPU."""
    PLACES.write(_measured_key(gpu, config, population), {"selector": _selector(faster), "why": why})


def keep_last(config: Config, population: int, engine: EngineInfo) -> None:
    """Store the engine as that of the last run of this shape."""
    key, place = _last_key(config, population), (_selector(engine), "")
    # Most runs use the engine of the previous run; then the file need not be written.
    if _read(key) != place:
        PLACES.write(key, dict(zip(("selector", "why"), place, strict=True)))


def _selector(engine: EngineInfo) -> str:
    """Return the selector that opens the engine again: for a GPU with its name, since its index may change."""
    return f"gpu:{engine.adapter}" if engine.engine == "gpu" else engine.engine


def _where_it_was(config: Config, population: int, require_hardware: bool) -> Placement | None:
    selector, _ = _read(_last_key(config, population)) or (None, "")
    if selector is None or (require_hardware and not selector.startswith("gpu")):
        return None
    try:
        again = devices.place(selector, require_hardware, trusted=True)
    except DeviceError:  # the device is missing, or fails its self-test now
        return None
    return replace(again, reason="the last run of this shape used it")


def _remembered(gpu: Placement, config: Config, population: int) -> Placement | None:
    selector, why = _read(_measured_key(gpu.engine.info, config, population)) or (None, "")
    if selector is None:
        return None
    reason = f"measured in an earlier run of this shape: {why}"
    if selector.startswith("gpu"):
        return replace(gpu, reason=reason)
    try:
        return Placement(devices.open_engine(selector), reason)
    except DeviceError:
        return None


def _cpu_opening_seconds() -> float:
    try:
        from difflogic.cpu.codegen.compiled import is_cached
    except ImportError:  # opening the engine reports this error later
        return 0.0
    return COMPILED_SECONDS if is_cached() else COMPILING_SECONDS


def _measured_key(gpu: EngineInfo, config: Config, population: int) -> str:
    # Another driver or version of this package may change which engine is faster.
    place = (gpu.adapter, gpu.backend, gpu.driver, __version__)
    return key_of("measured", *place, *_shape(config, population))


def _last_key(config: Config, population: int) -> str:
    return key_of("last", *_shape(config, population))


def _shape(config: Config, population: int) -> tuple[object, ...]:
    """Return the shape of a run as parts of a cache key: processor, cores, and settings that affect an epoch's work."""
    machine = (processor_name(), os.cpu_count() or 1)
    train = config.train
    return (*machine, asdict(config.model), asdict(config.task), train.batch, train.asynchronous, population)


def _read(key: str) -> tuple[str, str] | None:
    """Return the engine's selector and the reason stored at `key`, or None if there is no valid entry."""
    entry = PLACES.read().get(key, {})
    selector, why = entry.get("selector"), entry.get("why")
    # Users may edit the file, so its content is not trusted.
    is_valid = isinstance(selector, str) and re.fullmatch("cpu|reference|gpu:.+", selector)
    return (str(selector), why) if is_valid and isinstance(why, str) else None
