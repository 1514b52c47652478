"""Which engine a run of some shape was on here, and which of two was found to be faster.

Entries of `placement.json` in the user's cache: one per machine, GPU and shape for what was measured, one per
machine and shape for what was used last.
"""

from __future__ import annotations

import os
import platform
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import difflogic
from difflogic.config.schema import Config
from difflogic.devices.race import Decision
from difflogic.engine.api import EngineInfo
from difflogic.system.cache import JsonCache, key_of

PLACES = JsonCache("placement")


@dataclass(frozen=True)
class Place:
    """An engine, by what `place` needs to open it again."""

    engine: str
    """`gpu`, `cpu` or `reference`."""
    adapter: str = ""
    why: str = ""

    @property
    def selector(self) -> str:
        return f"gpu:{self.adapter}" if self.engine == "gpu" else self.engine


def measured(gpu: EngineInfo, config: Config, population: int) -> Place | None:
    """Where an earlier contest between this GPU and the processor sent a run of this shape."""
    return _read(_measured_key(gpu, config, population))


def keep_measured(gpu: EngineInfo, config: Config, population: int, decision: Decision) -> None:
    """Keep what a contest found, where both engines were timed."""
    if decision.compared:
        _write(_measured_key(gpu, config, population), Place(*_named(decision.engine), decision.reason))


def last(config: Config, population: int) -> Place | None:
    """Where the last run of this shape ended."""
    return _read(_last_key(config, population))


def keep_last(config: Config, population: int, engine: EngineInfo) -> None:
    """Keep where a run of this shape was trained."""
    place = Place(*_named(engine))
    if last(config, population) != place:
        _write(_last_key(config, population), place)


def _named(engine: EngineInfo) -> tuple[str, str]:
    return engine.engine, engine.adapter if engine.engine == "gpu" else ""


def _measured_key(gpu: EngineInfo, config: Config, population: int) -> str:
    place = (gpu.adapter, gpu.backend, gpu.driver, difflogic.__version__)
    return key_of("measured", *place, *_machine(), *_shape(config, population))


def _last_key(config: Config, population: int) -> str:
    return key_of("last", *_machine(), *_shape(config, population))


def _shape(config: Config, population: int) -> tuple[object, ...]:
    """Everything that sizes an epoch."""
    train = config.train
    return asdict(config.model), asdict(config.task), train.batch, train.asynchronous, population


@cache
def _machine() -> tuple[str, int]:
    """The processor's name and how many there are, without loading what an engine needs."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines() if cpuinfo.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return (names or [platform.processor() or platform.machine()])[0], os.cpu_count() or 1


def _read(key: str) -> Place | None:
    entry = PLACES.read().get(key)
    if entry is None:
        return None
    engine, adapter, why = (entry.get(name) for name in ("engine", "adapter", "why"))
    if engine not in ("gpu", "cpu", "reference") or not isinstance(adapter, str) or not isinstance(why, str):
        return None
    return None if engine == "gpu" and not adapter else Place(engine, adapter, why)


def _write(key: str, place: Place) -> None:
    PLACES.write(key, asdict(place))
