"""What a sweep has measured so far, in the user's cache until it is complete: one that was cut off goes on from there.

An entry of `tuning-measured.json`, of the same key as the result in `tuning.json`:

    {"adapter": NAME, "variants": [{"schedule": {"wg": 8, ...}, "seconds": {"gate_forward": 0.01, ...}}]}
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict

from difflogic.gpu.adapter import Adapter
from difflogic.gpu.kernels import TILED
from difflogic.gpu.plan import Plan, Schedule
from difflogic.gpu.tuned import key_of, schedule_of
from difflogic.kept import Entry, Kept
from difflogic.tell import tell

MEASURED = Kept("tuning-measured")

Seconds = dict[str, float]
"""Of each fused step."""


class Measured:
    """The variants that were measured for one piece of work on one adapter."""

    def __init__(self, adapter: Adapter, plan: Plan) -> None:
        self._adapter, self._key = adapter.name, key_of(adapter, plan)
        self._seconds = self._read()

    def __len__(self) -> int:
        return len(self._seconds)

    def __iter__(self) -> Iterator[Schedule]:
        return iter(self._seconds)

    def get(self, schedule: Schedule) -> Seconds | None:
        return self._seconds.get(schedule)

    def add(self, schedule: Schedule, seconds: Seconds) -> None:
        """Keep it at once: the next variant may take long, or not end well."""
        self._seconds[schedule] = seconds
        variants = [{"schedule": asdict(each), "seconds": found} for each, found in self._seconds.items()]
        MEASURED.write(self._key, {"adapter": self._adapter, "variants": variants})

    def forget(self) -> None:
        """The sweep is complete, or not to be gone on with."""
        self._seconds = {}
        MEASURED.drop(self._key)

    def _read(self) -> dict[Schedule, Seconds]:
        entry = MEASURED.read().get(self._key)
        try:
            return {} if entry is None else dict(map(_variant, entry["variants"]))
        except (ValueError, TypeError, KeyError) as error:
            tell(f"The entry of {self._adapter} in {MEASURED.path} cannot be used ({error}) and is ignored.")
            return {}


def reset(adapter: Adapter) -> int:
    """Forget every sweep of this adapter that was cut off; returns how many there were."""
    return MEASURED.forget(lambda entry: entry.get("adapter") == adapter.name)


def _variant(entry: Entry) -> tuple[Schedule, Seconds]:
    seconds = {kernel: float(entry["seconds"][kernel]) for kernel in sorted(TILED)}
    for kernel, each in seconds.items():
        if not (each > 0 and math.isfinite(each)):
            raise ValueError(f"{kernel} took {each} seconds")
    return schedule_of(entry["schedule"]), seconds
