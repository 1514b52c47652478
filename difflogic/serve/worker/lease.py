"""A worker's hold on one job: heartbeats that prolong it, for as long as the present phase may be silent.

The thread that compiles cannot say that it is alive, and one that hangs cannot either. So each phase has `first`
seconds when it is gone through for the first time. Another thread says meanwhile that the process is there: one that
was stopped is seen after `stopped`. Later what was usual decides: 20 times the slowest of the last 20 signs of life,
and at least 12 s. An example: epochs of 0.3 s are due within 12 s, and epochs of 3 s within 60 s.
"""

import os
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from difflogic.errors import StoreError
from difflogic.serve.store.jobs import JobRecord, LeaseLostError, Wanted
from difflogic.serve.store.store import Store
from difflogic.serve.worker.log import say, trim
from difflogic.system.memory import resident_memory

Phase = Literal["starting", "compiling", "training", "evaluating", "drawing", "finishing", "working"]
"""starting: loading what an engine needs; compiling: until the first epochs are done; evaluating: and saving; drawing:
the first state frame; finishing: the results' pictures; working: a follow-up."""
HEARTBEAT_S = 0.2
"""Seconds between two heartbeats, where nothing but the epoch is new: a write for every epoch would be too many."""
BEATS = 6
"""So many times the lease is prolonged in the time that it lasts: all but one may come late."""
RECENT = 20
"""How many signs of life say what is usual."""
COLD_FACTOR = 1.5
"""Until so many have come, this many times the longest wait so far is allowed too; compiling was a part of that."""
EXIT_LEASE_LOST = 3
"""Exit status of a worker that lost its lease."""


@dataclass(frozen=True)
class WorkerLimits:
    """How long a worker may be silent: what comes first has time, since a process that compiles cannot say anything."""

    first: float = 300.0
    """Seconds for starting, compiling, the first evaluation and frame, and the results' pictures..."""
    stopped: float = 30.0
    """...in which no thread of the process may be silent for longer: a library that is loaded from a slow disk is."""
    heartbeat: float = 12.0
    """Seconds between two signs of life while it trains, evaluates and saves: a hang is seen in a second more..."""
    factor: float = 20.0
    """...unless so many times the slowest of the last ones is longer."""
    follow_up: float = 3600.0
    """Seconds for a follow-up as a whole, which has no checkpoints..."""
    stalled: float = 120.0
    """...and for the time in which no processor works for it."""
    idle: float = 60.0
    """Seconds without a follow-up after which their worker ends."""
    stop: float = 60.0
    """Seconds to save and end, when asked to."""


class Lease:
    """One job under one lease. A heartbeat shows that the thread which sends it still works, so a hang is noticed."""

    def __init__(self, store: Store, job: JobRecord, number: int, limits: WorkerLimits) -> None:
        self.store, self.job, self.number, self.limits = store, job, number, limits
        self.wanted: Wanted | None = None
        self.watched = False
        self.phase: Phase = "starting"
        self.progress: dict[str, Any] = {}
        """Columns of the job that the next heartbeat writes, or `finish` where none comes."""
        self._warm: dict[Phase, deque[float]] = {}
        """The seconds between the last signs of life of each phase that was gone through once."""
        self._coldest = 0.0
        self._alive = self._reported = time.monotonic()

    def enter(self, phase: Phase, warm: bool = False) -> None:
        """Begin a phase. `warm`: it was gone through once, so that nothing has to be compiled for it."""
        self._measure()
        # The time until now belongs to the phase that ends, and is measured before the new one begins.
        self.phase = phase
        if warm:
            self.warm()
        self._heartbeat(phase=phase)

    def warm(self) -> None:
        """Note that the present phase was gone through once."""
        self._warm.setdefault(self.phase, deque(maxlen=RECENT))

    def is_warm(self, phase: Phase) -> bool:
        return phase in self._warm

    def alive(self, **progress: Any) -> None:
        """Record a heartbeat. It is only sent to the store if the last one was a while ago."""
        self._measure()
        self.progress |= progress
        # An epoch may take a millisecond: `progress` gathers what has come since the last heartbeat.
        if time.monotonic() - self._reported >= HEARTBEAT_S:
            self._heartbeat()

    def report(self, **progress: Any) -> None:
        """Record a heartbeat, and send it to the store at once."""
        self._measure()
        self._heartbeat(**progress)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Prolong the lease from a thread of its own while the present phase is gone through for the first time."""
        over = threading.Event()
        thread = threading.Thread(target=self._keep, args=(over,), name="lease", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _keep(self, over: threading.Event) -> None:
        while not over.wait(self.limits.stopped / BEATS):
            if self.is_warm(self.phase) or time.monotonic() - self._alive >= self.limits.first:
                continue
            try:
                self.store.prolong(self.job.id, self.number, self.limits.stopped)
            except LeaseLostError:  # which the thread that works finds out too, unless it has just handed the job back
                break
            except StoreError as error:
                say(str(error))
        self.store.close()

    def _heartbeat(self, **progress: Any) -> None:
        """End the process where the lease is lost: whoever has the job now must not be disturbed."""
        self._reported = time.monotonic()
        self.progress |= progress
        try:
            answer = self.store.heartbeat(self.job.id, self.number, self.duration(), resident_memory(), **self.progress)
        except LeaseLostError as error:
            say(f"{error} This worker drops the job at once.")
            os._exit(EXIT_LEASE_LOST)
        except StoreError as error:  # the next heartbeat may do better; if none does, the lease ends
            say(str(error))
            return
        # Only now: what a heartbeat that failed did not write is still there for the next one.
        self.progress.clear()
        self.wanted, self.watched = answer.wanted, answer.watched
        # The log grows with every evaluation, for as long as the job is trained.
        trim(self.store.job_folder(self.job.id).log)

    def duration(self) -> float:
        """Seconds for which this worker may now be silent: the length of the lease, which `kept` prolongs."""
        limits, usual = self.limits, self._warm.get(self.phase)
        if usual is None:
            return limits.stopped
        # An example: compiling took 60 s, and epochs take 0.1 s. After the first of them `usual` knows one quick epoch,
        # which is no measure yet: 1.5 * 60 = 90 s are allowed; after 20 epochs it is the larger of 12 s and 20 * 0.1 s.
        cold = 0.0 if len(usual) == RECENT else COLD_FACTOR * self._coldest
        return max(limits.heartbeat, limits.factor * max(usual, default=0.0), cold)

    def _measure(self) -> None:
        now = time.monotonic()
        usual, seconds = self._warm.get(self.phase), now - self._alive
        if usual is not None:
            usual.append(seconds)
        elif self.phase != "starting":  # which trains nothing
            self._coldest = max(self._coldest, seconds)
        self._alive = now
