"""Schedules that were measured to be faster than the default, kept in the user's cache.

A schedule holds for one adapter, driver, set of shaders and shape of work. The file, version 1:

    {"format": "difflogic-tuning", "version": 1,
     "entries": {KEY: {"adapter": NAME, "schedule": {"wg": 8, ...}, "default_ms": 190.1, "tuned_ms": 171.0}}}
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from difflogic import files
from difflogic.gpu.adapter import Adapter
from difflogic.gpu.plan import Plan, Schedule
from difflogic.gpu.shaders import shader_hash
from difflogic.tell import tell
from difflogic.user_cache import user_cache

FORMAT = "difflogic-tuning"
VERSION = 1
NAME = "tuning.json"


@dataclass(frozen=True)
class Tuned:
    """A stored result. Times are medians of a train step in milliseconds, measured in turns."""

    adapter: str
    schedule: Schedule
    default_ms: float
    tuned_ms: float


def key_of(adapter: Adapter, plan: Plan) -> str:
    """What a schedule holds for: adapter, backend, driver, shaders, and everything that sizes the work."""
    levels = [dataclasses.astuple(level) for level in plan.layout.levels]
    work = [levels, dataclasses.astuple(plan.shape), plan.models, plan.probes, plan.hard_batch]
    parts = [adapter.name, adapter.backend, adapter.driver, shader_hash(), json.dumps(work)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def lookup(adapter: Adapter, plan: Plan) -> Tuned | None:
    """The stored result for this work, if any."""
    return _read().get(key_of(adapter, plan))


def store(adapter: Adapter, plan: Plan, result: Tuned) -> Path:
    """Keep a result; returns the file. Raises OSError where the cache cannot be written."""
    return _write(_read() | {key_of(adapter, plan): result})


def reset(adapter: Adapter) -> int:
    """Forget every result of this adapter; returns how many there were. Raises OSError."""
    entries = _read()
    kept = {key: entry for key, entry in entries.items() if entry.adapter != adapter.name}
    if len(kept) < len(entries):
        _write(kept)
    return len(entries) - len(kept)


def _path() -> Path:
    return user_cache() / NAME


def _read() -> dict[str, Tuned]:
    path = _path()
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if (data["format"], data["version"]) != (FORMAT, VERSION):
            raise ValueError("it has another format or version")
        return {key: _entry(value) for key, value in data["entries"].items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        tell(
            f"The tuning cache {path} cannot be used ({type(error).__name__}: {error}) and is ignored: delete it, or "
            "measure anew with difflogic tune."
        )
        return {}


def _entry(value: dict[str, Any]) -> Tuned:
    schedule = Schedule(**value["schedule"])
    for field in dataclasses.fields(schedule):
        number = getattr(schedule, field.name)
        if not isinstance(number, int) or not 0 <= number <= 1024:
            raise ValueError(f"{field.name} is {number!r}")
    if not schedule.is_sound():
        raise ValueError(f"no schedule: {schedule}")
    return Tuned(str(value["adapter"]), schedule, float(value["default_ms"]), float(value["tuned_ms"]))


def _write(entries: dict[str, Tuned]) -> Path:
    path = _path()
    path.parent.mkdir(parents=True, exist_ok=True)
    data = {"format": FORMAT, "version": VERSION, "entries": {key: asdict(entry) for key, entry in entries.items()}}
    files.write_atomically(path, (json.dumps(data, indent=1) + "\n").encode())
    return path
