"""Split a population over several devices in proportion to their speed.

Each member stays on one device; its results equal those of training it separately there, bit for bit. Members are
assigned in the order of their seeds: the first device gets the first members. Speeds are measured over a few epochs,
which are discarded. The manifest stores the shares, so that a resumed run is split as before.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import accumulate, pairwise
from typing import Any

from difflogic.engine.api import Engine, EngineInfo, Model, describe_engine
from difflogic.engine.job import Job, TrainState
from difflogic.engine.population import ParallelModels, opened

NAME = "shared"
"""Name of the shared engine in manifests."""
TIMED = 2
"""Number of timed epochs per device, after one warm-up epoch that compiles and fills caches."""

clock = time.perf_counter


class SharedEngine:
    """Implementation of `engine.api.Engine` that trains on several devices, and does everything else on the first."""

    def __init__(self, engines: Sequence[Engine], shares: Sequence[int] | None = None) -> None:
        """Create the engine from one engine per device; `shares` are the numbers of members per device, if known."""
        self._engines, self._shares = engines, shares
        infos = [engine.info for engine in engines]
        adapters = " + ".join(map(describe_engine, infos))
        self.info = EngineInfo(NAME, adapters, software=all(info.software for info in infos))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engines[0], name)

    @property
    def selector(self) -> str:
        """Comma-separated selectors of all devices, as `--devices` accepts them."""
        return ",".join(engine.selector for engine in self._engines)

    def open(
        self, jobs: Sequence[Job], states: Sequence[TrainState], max_memory: int | None = None, reserved: int = 0
    ) -> Model:
        """Open models on all devices as one model, after measuring the devices if their shares are unknown."""

        def divided(shares: Sequence[int]) -> ParallelModels:
            variant = {engine.selector: share for engine, share in zip(self._engines, shares, strict=True)}
            openers: list[Callable[[], Model]] = [
                partial(engine.open, jobs[first:last], states[first:last], max_memory, reserved)
                for engine, (first, last) in zip(self._engines, pairwise(accumulate(shares, initial=0)), strict=True)
                if first < last
            ]
            return ParallelModels(opened(openers), replace(self.info, variant=variant))

        if self._shares is None or sum(self._shares) != len(jobs):
            even = proportional(len(jobs), [1.0] * len(self._engines))
            trial = divided(even)
            try:
                found = iter(speeds(trial))
                self._shares = proportional(len(jobs), [next(found) if share else 0.0 for share in even])
            finally:
                trial.close()
        return divided(self._shares)

    def memory(self, jobs: Sequence[Job], max_memory: int | None = None, reserved: int = 0) -> int:
        """Return the most bytes that all jobs together would need on a single device, since shares may be unknown."""
        return max(engine.memory(jobs, max_memory, reserved) for engine in self._engines)


def speeds(model: ParallelModels) -> list[float]:
    """Return each device's speed in members times epochs per second while all train; changes their states."""

    def timed(part: Model) -> float:
        part.train(1)
        members, begin = len(part.fetch_metrics()), clock()
        part.train(TIMED)
        part.fetch_metrics()
        return members * TIMED / (clock() - begin)

    with ThreadPoolExecutor(len(model.models)) as threads:
        return list(threads.map(timed, model.models))


def proportional(count: int, weights: Sequence[float]) -> list[int]:
    """Return the number of members per device so that all `count` finish earliest at speeds `weights` (D'Hondt)."""
    shares = [0] * len(weights)
    for _ in range(count):
        # Assign each member to the device that would finish first: after mere rounding, all might wait for a slow one.
        shares[max(range(len(weights)), key=lambda index: weights[index] / (shares[index] + 1))] += 1
    return shares
