"""`--engine auto` decides where a new run is trained: measured, remembered, or as --placement says.

What is remembered are entries of `placement.json` in the user's cache: one per machine, GPU and shape of a run for
which of two engines was measured to be faster, by a run or by `difflogic bench`, one per machine and shape for which
was used last.
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
"""About what opening the CPU engine takes: loading Numba, and its compiler on first use."""
PLACES = JsonCache("placement")


def place_run(config: Config, population: int, placing: Placing = "auto", require_hardware: bool = False) -> Placement:
    """Choose for a new run, among adapters that passed the self-test.

    `auto`: where there is a hardware GPU, what was found faster for this shape on this machine, else both it and
    the CPU engine are measured over the first epochs. `gpu`, `cpu`: the hardware GPU (the CPU engine where there is
    none), the CPU engine. `sticky`: where the last run of this shape was; where there was none, as `gpu`.
    Nothing but hardware under `require_hardware`. Raises UsageError, NoAdapterError and other DeviceErrors.
    """
    if placing == "cpu":
        if require_hardware:
            raise UsageError("--placement cpu means the CPU engine, but --require-hardware was given too: drop one.")
        return Placement(devices.open_engine("cpu"), "--placement cpu was given")
    if placing == "sticky" and (again := _where_it_was(config, population, require_hardware)) is not None:
        return again
    found = devices.place("auto", require_hardware, trusted=True)
    info = found.engine.info
    # A software adapter computes on the processor too, and slower than the CPU engine: there is nothing to measure.
    if placing != "auto" or info.engine != "gpu" or info.software or require_hardware:
        return found
    return _remembered(found, config, population) or replace(
        found,
        reason=f"{found.reason}, and measures the first epochs on it and on the CPU engine",
        candidate=Candidate("the CPU engine", partial(devices.open_engine, "cpu"), _cpu_opening_seconds),
    )


def keep_measured(gpu: EngineInfo, config: Config, population: int, decision: Decision) -> None:
    """Keep for later runs of this shape what a race against this GPU found, where both engines were timed."""
    if decision.compared:
        keep_faster(gpu, config, population, decision.engine, decision.reason)


def keep_faster(gpu: EngineInfo, config: Config, population: int, faster: EngineInfo, why: str) -> None:
    """Store for later runs of this shape which engine is faster on a machine with this GPU."""
    PLACES.write(_measured_key(gpu, config, population), {"selector": _selector(faster), "why": why})


def keep_last(config: Config, population: int, engine: EngineInfo) -> None:
    """Keep where a run of this shape was trained."""
    key, place = _last_key(config, population), (_selector(engine), "")
    # Most runs are where the last one was: the file is left alone then.
    if _read(key) != place:
        PLACES.write(key, dict(zip(("selector", "why"), place, strict=True)))


def _selector(engine: EngineInfo) -> str:
    """Return what opens an engine again; a GPU by its name, because another card may have been plugged in since."""
    return f"gpu:{engine.adapter}" if engine.engine == "gpu" else engine.engine


def _where_it_was(config: Config, population: int, require_hardware: bool) -> Placement | None:
    selector, _ = _read(_last_key(config, population)) or (None, "")
    if selector is None or (require_hardware and not selector.startswith("gpu")):
        return None
    try:
        again = devices.place(selector, require_hardware, trusted=True)
    except DeviceError:  # it is gone, or not to be trusted now
        return None
    return replace(again, reason="the last run of this shape was on it")


def _remembered(gpu: Placement, config: Config, population: int) -> Placement | None:
    selector, why = _read(_measured_key(gpu.engine.info, config, population)) or (None, "")
    if selector is None:
        return None
    reason = f"found on an earlier run of this shape: {why}"
    if selector.startswith("gpu"):
        return replace(gpu, reason=reason)
    try:
        return Placement(devices.open_engine(selector), reason)
    except DeviceError:
        return None


def _cpu_opening_seconds() -> float:
    try:
        from difflogic.cpu.codegen.compiled import is_cached
    except ImportError:  # opening it will say so
        return 0.0
    return COMPILED_SECONDS if is_cached() else COMPILING_SECONDS


def _measured_key(gpu: EngineInfo, config: Config, population: int) -> str:
    # Another driver or another version of this package may turn the answer around.
    place = (gpu.adapter, gpu.backend, gpu.driver, __version__)
    return key_of("measured", *place, *_shape(config, population))


def _last_key(config: Config, population: int) -> str:
    return key_of("last", *_shape(config, population))


def _shape(config: Config, population: int) -> tuple[object, ...]:
    """The machine, and everything that sizes an epoch."""
    train = config.train
    return (
        processor_name(),
        os.cpu_count() or 1,
        asdict(config.model),
        asdict(config.task),
        train.batch,
        train.asynchronous,
        population,
    )


def _read(key: str) -> tuple[str, str] | None:
    """Return the selector of an engine and why it was stored; None if there is no such entry."""
    entry = PLACES.read().get(key, {})
    selector, why = entry.get("selector"), entry.get("why")
    # The file is the user's: anything may stand in it.
    known = isinstance(selector, str) and re.fullmatch("cpu|reference|gpu:.+", selector)
    return (str(selector), why) if known and isinstance(why, str) else None
