"""Schedules that were measured to be faster than the default, kept in the user's cache.

A schedule holds for one adapter, driver, set of shaders and shape of work. An entry of `tuning.json`:

    {"adapter": NAME, "schedule": {"wg": 8, ...}, "default_ms": 190.1, "tuned_ms": 171.0}
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from difflogic.errors import LimitError
from difflogic.gpu.adapter import Adapter
from difflogic.gpu.plan import Plan, Schedule
from difflogic.gpu.shaders import shader_hash
from difflogic.kept import Entry, Kept
from difflogic.kept import key_of as kept_key
from difflogic.tell import tell

TUNING = Kept("tuning")


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
    return kept_key(adapter.name, adapter.backend, adapter.driver, shader_hash(), work)


def lookup(adapter: Adapter, limits: Mapping[str, int], plan: Plan) -> Tuned | None:
    """The stored result for this work; None, with a sentence, where it is no schedule, or none for these limits."""
    entry = TUNING.read().get(key_of(adapter, plan))
    try:
        if entry is None:
            return None
        found = _tuned(entry)
        dataclasses.replace(plan, schedule=found.schedule).check(limits, adapter.limits_loops)
        return found
    except (LimitError, ValueError, TypeError, KeyError) as error:
        tell(f"The entry of {adapter.name} in {TUNING.path} cannot be used ({error}) and is ignored.")
        return None


def store(adapter: Adapter, plan: Plan, result: Tuned) -> None:
    """Keep a result; a cache that cannot be written is told."""
    TUNING.write(key_of(adapter, plan), asdict(result))


def reset(adapter: Adapter) -> int:
    """Forget every result of this adapter; returns how many there were."""
    return TUNING.forget(lambda entry: entry.get("adapter") == adapter.name)


def schedule_of(fields: Entry) -> Schedule:
    """A schedule from a file. Raises ValueError or TypeError where it is none."""
    schedule = Schedule(**fields)
    for field in dataclasses.fields(schedule):
        number = getattr(schedule, field.name)
        if isinstance(number, bool) != (field.name == "keep") or not isinstance(number, int) or not 0 <= number <= 1024:
            raise ValueError(f"{field.name} is {number!r}")
    if not schedule.is_sound():
        raise ValueError(f"no schedule: {schedule}")
    return schedule


def _tuned(entry: Entry) -> Tuned:
    return Tuned(
        str(entry["adapter"]), schedule_of(entry["schedule"]), float(entry["default_ms"]), float(entry["tuned_ms"])
    )
