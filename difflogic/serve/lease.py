"""A worker's hold on one job: beats, with the right length of lease, and what is asked of it."""

from __future__ import annotations

import os
import time
from collections import deque
from typing import Any

from difflogic.errors import StoreError
from difflogic.memory import resident_memory
from difflogic.serve.job_log import say, trim
from difflogic.serve.jobs import Job, LeaseLostError, Wanted
from difflogic.serve.phases import Limits, Phase
from difflogic.serve.store import Store

INTERVAL_S = 0.2
"""Between two beats, where nothing but the epoch is new."""
RECENT = 20
"""Signs of life that say what is usual."""
COLD_FACTOR = 1.5
"""As long as those are not there, this times the longest wait so far, of which compiling was a part, is allowed."""
LOST = 3
"""Exit status of a worker that lost its lease."""


class Lease:
    """Beats go through here; each is a sign of life of the thread that calls it."""

    def __init__(self, store: Store, job: Job, number: int, limits: Limits) -> None:
        self.store, self.job, self.number, self.limits = store, job, number, limits
        self.wanted: Wanted | None = None
        self.watched = False
        self.phase: Phase = "starting"
        self.progress: dict[str, Any] = {}
        """What the next beat tells, and `finish` where none comes."""
        self._warm: dict[Phase, deque[float]] = {}
        """Seconds between signs of life, of each phase that was gone through once."""
        self._coldest = 0.0
        self._alive = self._told = time.monotonic()

    def enter(self, phase: Phase, warm: bool = False) -> None:
        """Something else begins. `warm`: it was gone through once, so that nothing has to be compiled for it."""
        self._mark()
        self.phase = phase
        if warm:
            self.warm()
        self._beat(phase=phase)

    def warm(self) -> None:
        """The present phase was gone through once."""
        self._warm.setdefault(self.phase, deque(maxlen=RECENT))

    def is_warm(self, phase: Phase) -> bool:
        return phase in self._warm

    def alive(self, **progress: Any) -> None:
        """A sign of life; told at once only where the last one was told a while ago."""
        self._mark()
        self.progress |= progress
        if time.monotonic() - self._told >= INTERVAL_S:
            self._beat()

    def tell(self, **progress: Any) -> None:
        """A sign of life, told at once."""
        self._mark()
        self._beat(**progress)

    def _beat(self, **progress: Any) -> None:
        """Does not return where the lease is lost: whoever has the job now must not be disturbed."""
        self._told = time.monotonic()
        self.progress |= progress
        try:
            answer = self.store.beat(self.job.id, self.number, self.length(), resident_memory(), **self.progress)
        except LeaseLostError as error:
            say(f"{error} This worker leaves it at once.")
            os._exit(LOST)
        except StoreError as error:  # the next beat may do better; if none does, the lease ends
            say(str(error))
            return
        self.progress.clear()
        self.wanted, self.watched = answer.wanted, answer.watched
        trim(self.store.place(self.job.id).log)

    def length(self) -> float:
        """Seconds until the next sign of life is due."""
        limits, usual = self.limits, self._warm.get(self.phase)
        if usual is None:
            return limits.first
        cold = 0.0 if len(usual) == RECENT else COLD_FACTOR * self._coldest
        return max(limits.beat, limits.factor * max(usual, default=0.0), cold)

    def _mark(self) -> None:
        now = time.monotonic()
        usual, seconds = self._warm.get(self.phase), now - self._alive
        if usual is not None:
            usual.append(seconds)
        elif self.phase != "starting":  # which trains nothing
            self._coldest = max(self._coldest, seconds)
        self._alive = now
