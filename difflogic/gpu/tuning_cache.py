"""Cache of launch configurations that `tune` has measured to be faster than the default.

An entry applies to one adapter, driver, set of shaders and shape of work. An entry of `tuning.json`:

    {"adapter": NAME, "schedule": {"wg": 8, ...}, "default_ms": 190.1, "tuned_ms": 171.0}

The times of each measured schedule are stored too, so that an interrupted sweep can resume. An entry of
`tuning-measured.json`, under the same key:

    {"adapter": NAME, "variants": [{"schedule": {"wg": 8, ...}, "seconds": {"gate_forward": 0.01, ...}}]}
"""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass

from difflogic.errors import LimitError
from difflogic.gpu.adapter import Adapter
from difflogic.gpu.kernels import TILED
from difflogic.gpu.launch import LaunchConfig
from difflogic.gpu.plan import Plan
from difflogic.gpu.planner import check
from difflogic.gpu.shaders import shader_hash
from difflogic.system.cache import Entry, JsonCache, warn
from difflogic.system.cache import key_of as kept_key

TUNING = JsonCache("tuning")
MEASURED = JsonCache("tuning-measured")

Seconds = dict[str, float]
"""Mapping from kernel names of fused steps to seconds per step."""


@dataclass(frozen=True)
class Tuned:
    """Result of tuning; times are medians in milliseconds per train step, with both schedules measured alternately."""

    adapter: str
    launch: LaunchConfig
    default_ms: float
    tuned_ms: float


def key_of(adapter: Adapter, plan: Plan) -> str:
    """Return the key of an entry, a hash of the adapter, backend, driver, shaders, and sizes of `plan`."""
    # Times depend on the widths of the levels, not on wires and logits.
    levels = [dataclasses.astuple(level) for level in plan.layout.levels]
    work = [levels, dataclasses.astuple(plan.shape), plan.models, plan.probes, plan.hard_batch]
    return kept_key(adapter.name, adapter.backend, adapter.driver, shader_hash(), work)


def lookup(adapter: Adapter, limits: Mapping[str, int], plan: Plan) -> Tuned | None:
    """Return the stored result for `plan`, or None if it is missing or, with a warning, not valid within `limits`."""
    entry = TUNING.read().get(key_of(adapter, plan))
    try:
        if entry is None:
            return None
        launch = LaunchConfig.read(entry["schedule"])
        tuned = Tuned(str(entry["adapter"]), launch, float(entry["default_ms"]), float(entry["tuned_ms"]))
        # The file may come from another device of the same name, so the schedule is checked against these limits.
        check(dataclasses.replace(plan, launch=tuned.launch), limits)
        return tuned
    except (LimitError, ValueError, TypeError, KeyError) as error:
        warn(f"The entry of {adapter.name} in {TUNING.path} cannot be used ({error}) and is ignored.")
        return None


def store(adapter: Adapter, plan: Plan, result: Tuned) -> None:
    """Store the result for `plan`, and warn if the cache cannot be written."""
    times = {"default_ms": result.default_ms, "tuned_ms": result.tuned_ms}
    TUNING.write(key_of(adapter, plan), {"adapter": result.adapter, "schedule": result.launch.written(), **times})


def reset(adapter: Adapter) -> tuple[int, int]:
    """Delete all entries of `adapter`; return the numbers of deleted results and deleted interrupted sweeps."""
    cut_off = sum(entry.get("adapter") == adapter.name for key, entry in MEASURED.read().items()
                  if key not in TUNING.read())  # fmt: skip
    results, _ = (cache.forget(lambda entry: entry.get("adapter") == adapter.name) for cache in (TUNING, MEASURED))
    return results, cut_off


class Measured:
    """Stored times of the launch configurations measured so far for a plan's sizes on an adapter."""

    def __init__(self, adapter: Adapter, plan: Plan) -> None:
        self._adapter, self._key = adapter.name, key_of(adapter, plan)
        self.seconds = self._read()
        """Seconds of the fused steps, by launch configuration."""

    def add(self, launch: LaunchConfig, seconds: Seconds) -> None:
        """Store the times of a launch configuration immediately, since the next one may take long or crash."""
        self.seconds[launch] = seconds
        MEASURED.write(self._key, {"adapter": self._adapter, "variants": self.variants()})

    def variants(self) -> list[Entry]:
        """Return the entries of all measured launch configurations, in the format of `variants` in the file."""
        return [{"schedule": each.written(), "seconds": seconds} for each, seconds in self.seconds.items()]

    def forget(self) -> None:
        """Delete all times, so that a later sweep starts from the beginning."""
        self.seconds = {}
        MEASURED.drop(self._key)

    def _read(self) -> dict[LaunchConfig, Seconds]:
        entry = MEASURED.read().get(self._key)
        try:
            return {} if entry is None else dict(map(_variant, entry["variants"]))
        except (ValueError, TypeError, KeyError) as error:
            warn(f"The entry of {self._adapter} in {MEASURED.path} cannot be used ({error}) and is ignored.")
            return {}


def _variant(entry: Entry) -> tuple[LaunchConfig, Seconds]:
    seconds = {kernel: float(entry["seconds"][kernel]) for kernel in sorted(TILED)}
    for kernel, each in seconds.items():
        if not (each > 0 and math.isfinite(each)):
            raise ValueError(f"expected a positive time for {kernel}, got {each} seconds")
    return LaunchConfig.read(entry["schedule"]), seconds
