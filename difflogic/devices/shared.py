"""Several devices that train one population, each so many of its members as it is fast.

A member is on one device for good, and is there, bit for bit, what it would be alone. Members stay in the order of
their seeds: the first device has the first ones. How many each has is measured over a few epochs that are thrown away,
and stands in the manifest, so that a run that goes on shares its members alike.
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
"""Of the engine, as the manifest has it."""
TIMED = 2
"""Epochs by which devices are measured, after one that compiles and fills caches."""

clock = time.perf_counter


class SharedEngine:
    """Implements `difflogic.engine.api.Engine`; what is no training, the first device does."""

    def __init__(self, engines: Sequence[Engine], shares: Sequence[int] | None = None) -> None:
        """`shares`: members of each, where they are known from earlier."""
        self._engines, self._shares = engines, shares
        infos = [engine.info for engine in engines]
        self.info = EngineInfo(
            NAME,
            adapter=" + ".join(describe_engine(info) for info in infos),
            software=all(info.software for info in infos),
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engines[0], name)

    @property
    def selector(self) -> str:
        """The devices in the form that `--devices` reads."""
        return ",".join(engine.selector for engine in self._engines)

    def open(
        self, jobs: Sequence[Job], states: Sequence[TrainState], max_memory: int | None = None, reserved: int = 0
    ) -> Model:
        """Open the models like every engine. Measures the devices first if their shares are not known."""
        if self._shares is None or sum(self._shares) != len(jobs):
            even = proportional(len(jobs), [1.0] * len(self._engines))
            trial = self._opened(even, jobs, states, max_memory, reserved)
            try:
                found = iter(speeds(trial))
                self._shares = proportional(len(jobs), [next(found) if share else 0.0 for share in even])
            finally:
                trial.close()
        return self._opened(self._shares, jobs, states, max_memory, reserved)

    def _opened(
        self,
        shares: Sequence[int],
        jobs: Sequence[Job],
        states: Sequence[TrainState],
        max_memory: int | None,
        reserved: int,
    ) -> ParallelModels:
        variant = {engine.selector: share for engine, share in zip(self._engines, shares, strict=True)}
        openers: list[Callable[[], Model]] = [
            partial(engine.open, jobs[first:last], states[first:last], max_memory, reserved)
            for engine, (first, last) in zip(self._engines, pairwise(accumulate(shares, initial=0)), strict=True)
            if first < last
        ]
        return ParallelModels(opened(openers), replace(self.info, variant=variant))

    def memory(self, jobs: Sequence[Job], max_memory: int | None = None, reserved: int = 0) -> int:
        """The memory of all devices, as if each had all models, because their shares are not known yet."""
        return max(engine.memory(jobs, max_memory, reserved) for engine in self._engines)


def speeds(model: ParallelModels) -> list[float]:
    """Members and epochs a second of each device, while all of them work; the model's states are of no use then."""

    def timed(part: Model) -> float:
        part.train(1)
        members, begin = len(part.fetch_metrics()), clock()
        part.train(TIMED)
        part.fetch_metrics()
        return members * TIMED / (clock() - begin)

    with ThreadPoolExecutor(len(model.models)) as threads:
        return list(threads.map(timed, model.models))


def proportional(count: int, weights: Sequence[float]) -> list[int]:
    """`count` shared out by weights so that the part that takes longest ends as soon as it can (D'Hondt's method)."""
    shares = [0] * len(weights)
    for _ in range(count):
        # To whoever would end it first: rounding to the nearest whole share could make all wait for a slow device.
        shares[max(range(len(weights)), key=lambda index: weights[index] / (shares[index] + 1))] += 1
    return shares
